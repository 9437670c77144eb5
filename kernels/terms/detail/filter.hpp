// kernels/terms/detail/filter.hpp - filter of the search for texts: integer scores from posting
// lists
//
// A block takes one query and one tile of items. It lays the tile's posting lists of the query's
// terms end to end and gives each warp as many postings as the next one, whatever lists they are
// of. Sums lie in shared memory: only those that reach the query's gate are written, to its list.
//
// Source: Amorim, 2019, FaSST-kNN, sections 4.2 to 4.4: balance over postings, a threshold from a
// sample, compaction.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cpp/base/stop.hpp"
#include "kernels/knn/neighbor_lists.hpp"
#include "kernels/terms/detail/bounded_terms.hpp"
#include "kernels/terms/detail/dense_terms.hpp"
#include "kernels/terms/detail/index.hpp"
#include "kernels/terms/detail/queries.hpp"

namespace gputext::gpu {

struct TermFilterJob {
    TermIndex index;
    TermQueries queries;
    QuerySelection selection;
    std::uint32_t most_terms;  // of a query
    const float* gates;        // by query, from TermGates
    std::uint32_t first_item;  // number of the index's first item
    std::uint32_t begin, end;  // numbers of the items that may be found
    ListsView lists;
    /// Where dense terms are summed beforehand: for all queries in their order only.
    DenseTerms dense;
    DenseQueries dense_queries;
    std::int16_t* dense_scores;
    /// Where bounded terms may be left out, in place of that; then scores in lists are least ones.
    BoundedTerms bounded;
    LightQueries light;
};

/// Adds items to the lists of the selected queries whose gates they reach, with their scores; where
/// the gate is -infinity all that share a term. In launches of some 10 ms, between which it looks
/// at `stop`: `work` is about how many postings there are in all.
Status run_term_filter(const TermFilterJob& job, double work, Stop stop, cudaStream_t stream);

/// Scores that a group of items has at most, in `tiles` tiles at equal distances: for each query
/// kTermGroups scores a tile.
inline constexpr std::uint32_t kTermGroups = 256;
Status sample_terms(const TermFilterJob& job, std::uint32_t tiles, float* sampled,
                    cudaStream_t stream);

/// The filter for so few queries that their scores may be kept: kTermTile for each tile of
/// the index, query by query. Items of equal keys get 0. And the largest scores of groups of items,
/// kWideGroups a tile. Makes the lists empty before, of limits `radius`. For all queries in their
/// order.
inline constexpr std::uint32_t kWideGroups = 32;
Status score_all_terms(const TermFilterJob& job, double radius, int* scores, float* largest,
                       cudaStream_t stream);
/// Adds items to lists by scores that are kept, and by gates, which it writes: those for the limit,
/// or higher ones, as the `rank`-th largest score of groups suggests, which so many items reach;
/// infinity where the gate would be -infinity. Comes right behind score_all_terms().
Status filter_scores(const TermFilterJob& job, const TermGates& gates, double limit,
                     const int* scores, const float* largest, std::uint32_t rank,
                     cudaStream_t stream);

/// Adds to `work`, on the device, the postings of the selected queries' terms.
Status count_term_work(const TermFilterJob& job, unsigned long long* work, cudaStream_t stream);

}  // namespace gputext::gpu
