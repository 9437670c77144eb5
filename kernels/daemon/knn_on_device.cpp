#include <memory>

#include "cpp/daemon/keyed_knn_on_device.hpp"
#include "cpp/daemon/knn_on_device.hpp"
#include "cpp/knn/merged_search.hpp"
#include "cpp/link/knn.hpp"
#include "kernels/daemon/kernels_of.hpp"
#include "kernels/knn/keyed_knn.hpp"
#include "kernels/knn/knn.hpp"

namespace gputext {
namespace {

/// Divisor of the device's memory: the part that rows in half precision of kept items may take.
constexpr std::uint64_t kPartForItems = 8;

}  // namespace

// Sparse vectors that are not texts are computed on the host's threads.

template <>
class Kernels<SubmitKnn> {
public:
    static void provide(CudaDevice& device) {
        const auto kept = std::make_shared<gpu::KeptItems>(device.info().memory / kPartForItems);
        device.keep({[kept] { return kept->bytes(); }, [kept] { kept->clear(); }});
        device.provide<KnnOnDevice>([&device, kept](const KnnParameters& parameters,
                                                    const Vectors& queries, const Vectors& items,
                                                    const RowKeys& keys, std::uint64_t memory,
                                                    Execution& execution) -> Result<Neighbours> {
            if (queries.sparse() || items.sparse())
                return KnnOnDevice::on_host(parameters, queries, items, keys, memory, execution);
            kept->drop_gone(device.ranges());
            return device.run(memory, [&](const gpu::DeviceWork& work) {
                const auto search = [&](const KnnParameters& wanted, const Vectors& of,
                                        const Vectors& among, const RowKeys& own) {
                    return gpu::knn(wanted, of, among, own, work, device.ring(), execution, nullptr,
                                    kept.get());
                };
                return search_merging_copies(parameters, queries, items, keys, search, execution);
            });
        });
        device.provide<KeyedKnnOnDevice>(
            [&device, kept](const KnnParameters& parameters, const Vectors& queries,
                            const Vectors& items, const KeyGroups& groups, const RowKeys& excluded,
                            std::uint64_t memory, Execution& execution) -> Result<Neighbours> {
                if (queries.sparse() || items.sparse())
                    return KeyedKnnOnDevice::on_host(parameters, queries, items, groups, excluded,
                                                     memory, execution);
                kept->drop_gone(device.ranges());
                return device.run(memory, [&](const gpu::DeviceWork& work) {
                    return gpu::keyed_knn(parameters, queries, items, groups, excluded, work,
                                          device.ring(), execution, nullptr, kept.get());
                });
            });
    }
};

template void provide_kernels<SubmitKnn>(CudaDevice& device);

}  // namespace gputext
