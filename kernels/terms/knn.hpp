// kernels/terms/knn.hpp - cpp/terms/knn.hpp on a device
//
// Gives the CPU's answer, to the bit, at every size of memory. Items are indexed on the device
// (kernels/terms/detail/index.hpp), in as many parts as that needs, and queries are worked on a
// tile at a time. For each tile
//
//   - a filter that sums integers of low precision, with a proven bound
//     (kernels/terms/detail/queries.hpp, kernels/terms/detail/filter.hpp), finds the few items that
//     may be among a query's k nearest: those beyond a threshold that a sample of the items
//     suggests;
//   - their distances are computed exactly (kernels/terms/detail/search.hpp), and sorted. These
//     prove the threshold.
//
// Terms of very many items are summed by the tensor cores where queries are many and texts are long
// (kernels/terms/detail/dense_terms.hpp), or left to a bound where they weigh little
// (kernels/terms/detail/bounded_terms.hpp). Of few queries the scores are kept, and the threshold
// is found in them.
//
// Queries that the sample misled, or whose bound is too wide, are searched again without a guess, a
// few items at a time if these are all equally near. So are all queries of which more than 1024
// neighbors or all within a radius are wanted, and the items behind the first part.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/terms/knn.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// What a search did, for those who measure.
struct TermKnnCounts {
    double index_ms = 0;  // on the device: weighing and indexing the items
    double sample_ms = 0, filter_ms = 0, score_ms = 0, sort_ms = 0;
    double again_ms = 0;  // for queries that were searched again; in the four before, too
    std::uint64_t found = 0;
    std::uint64_t rescored = 0;
    std::uint64_t escalated = 0;
};

/// The fewest bytes of device memory that term_knn() can do with: one query beside one tile
/// of items. With `good` nothing has to be done twice or copied twice.
struct TermKnnBytes {
    std::size_t least;
    std::size_t good;
};
TermKnnBytes term_knn_bytes(const TermKnnParameters& parameters, const Vectors& queries,
                            const Vectors& items);

/// As gputext::term_knn, on the current device, in `work.bytes` of its memory; of the parameters,
/// memory_limit and simd are the CPU's and mean nothing here. `queries` and `items`: sparse, a
/// column a term; `factors`: one for each column. O(elements of the items), and for each query
/// O(items that its terms are in). The ring serves nothing else meanwhile.
/// Errors: the operator's; out_of_memory, which says how much is needed; device_error, device_lost.
Result<Neighbors> term_knn(const TermKnnParameters& parameters, std::span<const double> factors,
                            const Vectors& queries, const Vectors& items, const RowKeys& keys,
                            const DeviceWork& work, UploadRing& ring, Execution& execution,
                            TermKnnCounts* counts = nullptr);

}  // namespace gputext::gpu
