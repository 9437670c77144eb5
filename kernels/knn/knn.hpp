// kernels/knn/knn.hpp - cpp/knn/knn.hpp on a device, for dense vectors
//
// Gives the CPU's answer, to the bit, at every size of memory. Queries are worked on in tiles and,
// where the items do not fit, items in batches. For each tile
//
//   - a filter in half precision with a proven bound (kernels/knn/detail/fp16_rows.hpp) finds the
//     few items that may be among a query's k nearest: those beyond a threshold, which a sample of
//     the items suggests, or, of few items of few dimensions, the largest scores of groups of items
//     (kernels/knn/detail/fp16_search.hpp);
//   - their distances are computed exactly, and sorted (kernels/knn/neighbor_lists.hpp). These
//     prove the threshold;
//   - queries for which the bound is too wide, or which the sample misled, are filtered again by
//     differences in double precision (kernels/knn/detail/direct_filter.hpp), a few items at a time
//     where these are all equally near.

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/knn/knn.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"
#include "kernels/knn/item_cache.hpp"

namespace gputext::gpu {

/// What a search did, for those who measure.
struct KnnCounts {
    double prepare_ms = 0;  // on the device: converting items and queries
    double search_ms = 0;   // on the device: from the first filter to the sorted lists
    std::uint64_t escalated = 0;
    std::uint64_t rescored = 0;
};

/// The fewest bytes of device memory that knn() can do with: one query beside a few items. With
/// `good` nothing has to be done twice or copied twice.
struct KnnBytes {
    std::size_t least;
    std::size_t good;
};
KnnBytes knn_bytes(const KnnParameters& parameters, const Vectors& queries, const Vectors& items);

/// As gputext::knn, on the current device, in `work.bytes` of its memory; of the parameters,
/// memory_limit and simd are the CPU's and mean nothing here. `queries` and `items`: dense, of the
/// same dimensions. O(queries * items * dimensions) in half precision, and exactly for what the
/// filter finds. The ring serves nothing else meanwhile. Items of resident memory that the device
/// has a copy of are searched where they are; what is made of them goes to `cache`, unless null.
/// Errors: the operator's; invalid_argument for sparse vectors; out_of_memory, which says how much
/// is needed; device_error, device_lost.
Result<Neighbors> knn(const KnnParameters& parameters, const Vectors& queries,
                       const Vectors& items, const RowKeys& keys, const DeviceWork& work,
                       UploadRing& ring, Execution& execution, KnnCounts* counts = nullptr,
                       ItemCache* cache = nullptr);

}  // namespace gputext::gpu
