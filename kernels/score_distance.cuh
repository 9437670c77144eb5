// kernels/score_distance.cuh - a found item's key in a list, for the kernels that merge lists

#pragma once

#include "kernels/exact_distance.cuh"
#include "kernels/neighbour_lists.hpp"

namespace gputext::gpu {

/// The ordered distances of a query and N items, or kNoDistance where one is not to be kept.
/// Called by half warps.
template <class T, unsigned N>
__device__ void keys_of_items(const MergeInput& input, std::uint32_t query,
                              const std::uint32_t (&items)[N], double limit, unsigned lanes,
                              std::uint64_t (&keys)[N]) {
    const DeviceQueries& queries = input.queries;
    const std::uint32_t dimensions = queries.dimensions;
    const ExactQuery exact{queries.elements + std::size_t{query} * dimensions,
                           queries.squares[query]};
    const T* rows[N];
#pragma unroll
    for (unsigned n = 0; n < N; ++n)
        rows[n] = static_cast<const T*>(input.items.elements) +
                  std::size_t{items[n] - input.first_item} * dimensions;
    double distances[N];
    exact_distances(input.metric, exact, rows, dimensions, lanes, distances);
#pragma unroll
    for (unsigned n = 0; n < N; ++n) {
        const bool excluded =
            queries.keys != nullptr && queries.keys[query] == input.item_keys[items[n]];
        keys[n] =
            excluded || !(distances[n] <= limit)
                ? kNoDistance
                : ordered_bits(static_cast<std::uint64_t>(__double_as_longlong(distances[n])));
    }
}

__device__ inline double distance_of_key(std::uint64_t key) {
    return __longlong_as_double(static_cast<long long>(bits_of_ordered(key)));
}

}  // namespace gputext::gpu
