#include "kernels/knn/k_means.hpp"

#include "kernels/knn/knn.hpp"

namespace gputext::gpu {

Result<KMeans> k_means(const KMeansParameters& parameters, const Vectors& items,
                       const DeviceWork& work, UploadRing& ring, Execution& execution) {
    const CentroidSearch search = [&](const KnnParameters& wanted, const Vectors& queries,
                                      const Vectors& centroids, Execution& part) {
        return knn(wanted, queries, centroids, {}, work, ring, part);
    };
    return gputext::k_means(parameters, items, search, execution);
}

}  // namespace gputext::gpu
