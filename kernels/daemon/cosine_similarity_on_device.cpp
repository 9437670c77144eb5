#include <vector>

#include "cpp/daemon/cosine_similarity_on_device.hpp"
#include "cpp/link/cosine_similarity.hpp"
#include "kernels/daemon/kernels_of.hpp"
#include "kernels/knn/cosine_similarity.hpp"

namespace gputext {

template <>
class Kernels<SubmitCosineSimilarity> {
public:
    static void provide(CudaDevice& device) {
        device.provide<CosineSimilarityOnDevice>(
            [&device](const Vectors& query, const Vectors& items, std::uint64_t memory,
                      Execution& execution) -> Result<std::vector<double>> {
                if (query.sparse() || items.sparse())
                    return CosineSimilarityOnDevice::on_host(query, items, memory, execution);
                return device.run(memory, [&](const gpu::DeviceWork& work) {
                    return gpu::cosine_similarities(query, items, work, device.ring(), execution);
                });
            });
    }
};

template void provide_kernels<SubmitCosineSimilarity>(CudaDevice& device);

}  // namespace gputext
