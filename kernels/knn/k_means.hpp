// kernels/knn/k_means.hpp - k-means on a device
//
// Items stay on the device where they fit, as they are and in half precision. For each assignment
// the distance to an item's own centroid becomes a limit, a filter with a proven bound
// (kernels/knn/detail/fp16_filter.hpp) finds the few centroids that may be within it, exact
// distances decide between these, and items that changed their clusters are taken from the sums of
// one and added to the other's, as integers. The host chooses first centroids and computes means
// (cpp/knn/cluster_assignment.hpp).

#pragma once

#include "cpp/knn/cluster_assignment.hpp"
#include "cpp/knn/k_means.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// The fewest bytes of device memory that k_means() can do with. With `good` the items are
/// uploaded once, not for each assignment.
struct KMeansBytes {
    std::size_t least;
    std::size_t good;
};
KMeansBytes k_means_bytes(const KMeansParameters& parameters, const Vectors& items);

/// A WithAssignment on the current device, in `work.bytes` of its memory; of the task's parameters,
/// memory_limit and simd are the CPU's and mean nothing here. Each assignment of all items is
/// O(items * k * dimensions) in half precision, and exact for what the filter finds. The ring
/// serves nothing else meanwhile. Errors: out_of_memory, which says how much is needed;
/// device_error, device_lost.
Status with_assignment(const AssignmentTask& task, const UseAssignment& use, const DeviceWork& work,
                       UploadRing& ring, const Execution& execution);

/// As gputext::k_means, to the bit, by with_assignment() of all items. Errors: the operator's, too.
Result<KMeans> k_means(const KMeansParameters& parameters, const Vectors& items,
                       const DeviceWork& work, UploadRing& ring, Execution& execution);

}  // namespace gputext::gpu
