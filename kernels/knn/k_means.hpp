// kernels/knn/k_means.hpp - k-means with nearest centroids found on a device

#pragma once

#include "cpp/knn/k_means.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// As gputext::k_means, to the bit. Nearest centroids, which take nearly all of the time, are
/// gpu::knn's on the current device, in `work.bytes` of its memory; the sums of items that change
/// their clusters are the host's. The items are uploaded again for each step and each 96 of the
/// first centroids. The ring serves nothing else meanwhile.
/// Errors: the operator's, and those of gpu::knn.
Result<KMeans> k_means(const KMeansParameters& parameters, const Vectors& items,
                       const DeviceWork& work, UploadRing& ring, Execution& execution);

}  // namespace gputext::gpu
