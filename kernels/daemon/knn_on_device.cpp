#include "cpp/daemon/knn_on_device.hpp"
#include "cpp/knn/merged_search.hpp"
#include "cpp/link/knn.hpp"
#include "kernels/daemon/kernels_of.hpp"
#include "kernels/knn/knn.hpp"

namespace gputext {

// Sparse vectors that are not texts are computed on the host's threads.

template <>
class Kernels<SubmitKnn> {
public:
    static void provide(CudaDevice& device) {
        device.provide<KnnOnDevice>([&device](const KnnParameters& parameters,
                                              const Vectors& queries, const Vectors& items,
                                              const RowKeys& keys, std::uint64_t memory,
                                              Execution& execution) -> Result<Neighbours> {
            if (queries.sparse() || items.sparse())
                return KnnOnDevice::on_host(parameters, queries, items, keys, memory, execution);
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                const auto search = [&](const KnnParameters& wanted, const Vectors& of,
                                        const Vectors& among, const RowKeys& own) {
                    return gpu::knn(wanted, of, among, own, work, device.ring(), execution);
                };
                return search_merging_copies(parameters, queries, items, keys, search, execution);
            });
        });
    }
};

template void provide_kernels<SubmitKnn>(CudaDevice& device);

}  // namespace gputext
