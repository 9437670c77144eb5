#include <vector>

#include "cpp/daemon/outlier_factor_on_device.hpp"
#include "cpp/link/outlier_factor.hpp"
#include "kernels/daemon/kernels_of.hpp"
#include "kernels/knn/outlier_factor.hpp"

namespace gputext {

template <>
class Kernels<SubmitOutlierFactor> {
public:
    static void provide(CudaDevice& device) {
        device.provide<OutlierFactorOnDevice>(
            [&device](const OutlierParameters& parameters, const Vectors& items,
                      std::uint64_t memory, Execution& execution) -> Result<std::vector<double>> {
                if (items.sparse())
                    return OutlierFactorOnDevice::on_host(parameters, items, memory, execution);
                return device.run(memory, [&](const gpu::DeviceWork& work) {
                    return gpu::local_outlier_factors(parameters, items, work, device.ring(),
                                                      execution);
                });
            });
    }
};

template void provide_kernels<SubmitOutlierFactor>(CudaDevice& device);

}  // namespace gputext
