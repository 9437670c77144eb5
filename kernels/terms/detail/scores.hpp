// kernels/terms/detail/scores.hpp - exact distances of the items that the filter of terms found

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/knn/neighbour_lists.hpp"
#include "kernels/terms/detail/bounded_terms.hpp"
#include "kernels/terms/detail/queries.hpp"

namespace gputext::gpu {

struct TermScoreJob {
    TermQueries queries;
    std::uint32_t most_terms;  // of a query
    TermRows items;
    std::uint32_t first_item;  // number of the first of them
    QuerySelection selection;
    const float* least;  // scores below which found items are left out, by query; or null
    ListsView lists;
    const float* gates;    // that they were found by
    BoundedTerms bounded;  // that were left out of scores
    LightQueries light;
    unsigned long long* rescored;  // distances computed are counted here
    unsigned long long* found;     // and items found here
};

/// Writes the keys of found items, for NeighbourLists::keep(): those that share no term with the
/// query, or are beyond its limit, get kNoDistance.
Status score_terms(const TermScoreJob& job, cudaStream_t stream);

}  // namespace gputext::gpu
