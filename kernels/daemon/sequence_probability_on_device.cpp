#include "cpp/daemon/sequence_probability_on_device.hpp"
#include "cpp/link/sequence_probability.hpp"
#include "kernels/daemon/kernels_of.hpp"
#include "kernels/embeddings/sequence_probability.hpp"

namespace gputext {

template <>
class Kernels<SubmitSequenceProbability> {
public:
    static void provide(CudaDevice& device) {
        device.provide<SequenceProbabilityOnDevice>(
            [&device](const NextWordModel& model, const TokenSequences& sequences,
                      std::uint64_t memory, Execution& execution) -> Result<SequenceProbabilities> {
                if (model.vectors.dimensions > gpu::kMostNextWordDimensions)
                    return SequenceProbabilityOnDevice::on_host(model, sequences, memory,
                                                                execution);
                return device.run(memory, [&](const gpu::DeviceWork& work) {
                    return gpu::sequence_probabilities(model, sequences, work, device.ring(),
                                                       execution);
                });
            });
    }
};

template void provide_kernels<SubmitSequenceProbability>(CudaDevice& device);

}  // namespace gputext
