#include "cpp/daemon/term_knn_on_device.hpp"
#include "cpp/link/term_knn.hpp"
#include "kernels/daemon/kernels_of.hpp"
#include "kernels/terms/knn.hpp"

namespace gputext {

template <>
class Kernels<SubmitTermKnn> {
public:
    static void provide(CudaDevice& device) {
        device.provide<TermKnnOnDevice>(
            [&device](const TermKnnParameters& parameters, std::span<const double> factors,
                      const Vectors& queries, const Vectors& items, const RowKeys& keys,
                      std::uint64_t memory, Execution& execution) -> Result<Neighbours> {
                return device.run(memory, [&](const gpu::DeviceWork& work) {
                    return gpu::term_knn(parameters, factors, queries, items, keys, work,
                                         device.ring(), execution);
                });
            });
    }
};

template void provide_kernels<SubmitTermKnn>(CudaDevice& device);

}  // namespace gputext
