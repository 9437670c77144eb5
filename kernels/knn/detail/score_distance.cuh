// kernels/knn/detail/score_distance.cuh - sort key of a found item, for the kernels that merge
// lists

#pragma once

#include "kernels/knn/exact_distance.cuh"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {

/// Has a row brought near by a half warp, all of it at once: reading it piece by piece waits for
/// memory with each piece.
template <class T>
__device__ void fetch_ahead(const T* row, std::uint32_t dimensions) {
    constexpr unsigned kLine = 128;
    const auto* bytes = reinterpret_cast<const char*>(row);
    for (unsigned at = threadIdx.x % kHalfWarp * kLine; at < dimensions * sizeof(T);
         at += kHalfWarp * kLine)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(bytes + at));
}

/// The ordered distance of a query and the lane's own of N items, or kNoDistance where it is not to
/// be kept. Called by half warps.
template <class T, unsigned N>
__device__ std::uint64_t key_of_item(const MergeInput& input, std::uint32_t query,
                                     const std::uint32_t (&items)[N], double limit,
                                     unsigned lanes) {
    const DeviceQueries& queries = input.queries;
    const std::uint32_t dimensions = queries.dimensions;
    const ExactQuery exact{queries.elements + std::size_t{query} * dimensions,
                           queries.squares[query]};
    const T* rows[N];
    std::uint32_t own = items[0];
#pragma unroll
    for (unsigned n = 0; n < N; ++n) {
        rows[n] = static_cast<const T*>(input.items.elements) +
                  std::size_t{items[n] - input.first_item} * dimensions;
        if (n == own_pair<N>()) own = items[n];
    }
    constexpr std::uint32_t kNarrow = 128;  // dimensions, which are read at once anyway
    if (dimensions > kNarrow) {
#pragma unroll
        for (unsigned n = 0; n < N; ++n) fetch_ahead(rows[n], dimensions);
    }
    const double distance = exact_distance(input.metric, exact, rows, dimensions, lanes);
    const bool excluded =
        (queries.keys != nullptr && queries.keys[query] == input.item_keys[own]) ||
        (input.first_query != kNoItems && own >= input.first_query + query);
    if (excluded || !(distance <= limit)) return kNoDistance;
    return ordered_bits(static_cast<std::uint64_t>(__double_as_longlong(distance)));
}

__device__ inline double distance_of_key(std::uint64_t key) {
    return __longlong_as_double(static_cast<long long>(bits_of_ordered(key)));
}

}  // namespace gputext::gpu
