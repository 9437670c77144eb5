#include "cpp/daemon/k_means_on_device.hpp"
#include "cpp/link/k_means.hpp"
#include "kernels/daemon/kernels_of.hpp"
#include "kernels/knn/k_means.hpp"

namespace gputext {

template <>
class Kernels<SubmitKMeans> {
public:
    static void provide(CudaDevice& device) {
        device.provide<KMeansOnDevice>([&device](const KMeansParameters& parameters,
                                                 const Vectors& items, std::uint64_t memory,
                                                 Execution& execution) -> Result<KMeans> {
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                return gpu::k_means(parameters, items, work, device.ring(), execution);
            });
        });
    }
};

template void provide_kernels<SubmitKMeans>(CudaDevice& device);

}  // namespace gputext
