#include "cpp/daemon/near_duplicates_on_device.hpp"
#include "cpp/link/near_duplicates.hpp"
#include "kernels/daemon/kernels_of.hpp"
#include "kernels/documents/near_duplicates.hpp"

namespace gputext {

template <>
class Kernels<SubmitNearDuplicates> {
public:
    static void provide(CudaDevice& device) {
        device.provide<NearDuplicatesOnDevice>(
            [&device](const NearDuplicateParameters& parameters, const Documents& documents,
                      GivenSignatures signatures, std::uint64_t memory,
                      Execution& execution) -> Result<NearDuplicates> {
                return device.run(memory, [&](const gpu::DeviceWork& work) {
                    return gpu::near_duplicates(parameters, documents, signatures, work,
                                                device.ring(), execution);
                });
            });
        device.provide<NearPairsOnDevice>([&device](const NearDuplicateParameters& parameters,
                                                    const DistinctDocuments& documents,
                                                    const PairPart& part, std::uint64_t memory,
                                                    Execution& execution) -> Result<PartPairs> {
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::near_pairs(parameters, documents, part, work, device.ring(), execution);
            });
        });
        device.provide<SignaturesOnDevice>(
            [&device](const Documents& documents, std::size_t longest, std::uint64_t memory,
                      Execution& execution) -> Result<std::vector<Ctph>> {
                return device.run(memory, [&](const gpu::DeviceWork& work) {
                    return gpu::ctph_signatures(documents, longest, work, device.ring(), execution);
                });
            });
        for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact})
            device.warm_up([&device, mode] { return first_job(device, mode); });
    }

private:
    static Status first_job(CudaDevice& device, NearDuplicateMode mode) {
        const std::uint8_t bytes[] = "one document, one documents";
        const Extent extents[] = {{0, 12}, {14, 13}};
        Execution execution(1);
        return device
            .compute<NearDuplicatesOnDevice>(NearDuplicateParameters{0.3, mode},
                                             Documents{bytes, extents}, GivenSignatures(),
                                             std::uint64_t{1} << 29, execution)
            .status();
    }
};

template void provide_kernels<SubmitNearDuplicates>(CudaDevice& device);

}  // namespace gputext
