// kernels/base/warp.cuh - sums, extremes, scans and places among the lanes of a warp
//
// Every function is called by all lanes of the warp, unless it takes a mask of those that call it.
// Sums of floating-point numbers have the same bits on every device: lanes half a warp apart are
// added first and neighbors last, each sum is rounded, and none is fused with a product.

#pragma once

#include <cstdint>
#include <cub/warp/warp_scan.cuh>
#include <type_traits>

#include "cpp/base/rounded.hpp"
#include "kernels/base/warp.cuh"

namespace gputext::gpu {

inline constexpr unsigned kWarp = 32;
inline constexpr unsigned kAllLanes = 0xffffffffu;

/// What `combine` makes of the values of each aligned group of `Lanes` lanes, for all of the group.
template <unsigned Lanes, class Number, class Combine>
__device__ inline Number combine_lanes(Number value, unsigned mask, Combine combine) {
#pragma unroll
    for (unsigned distance = Lanes / 2; distance > 0; distance /= 2)
        value = combine(value, __shfl_xor_sync(mask, value, distance));
    return value;
}

/// Whether one instruction reduces a warp's numbers, from compute capability 8.0 on.
template <unsigned Lanes, class Number>
__host__ __device__ constexpr bool reduced_at_once() {
    return Lanes == kWarp && std::is_integral_v<Number> && sizeof(Number) == 4;
}

// Sums, minima and maxima of each aligned group of lanes, for all of the group.

template <unsigned Lanes = kWarp, class Number>
__device__ inline Number warp_sum(Number value, unsigned mask = kAllLanes) {
#if __CUDA_ARCH__ >= 800
    if constexpr (reduced_at_once<Lanes, Number>()) return __reduce_add_sync(mask, value);
#endif
    return combine_lanes<Lanes>(value, mask, [](Number a, Number b) {
        if constexpr (std::is_integral_v<Number>)
            return a + b;
        else
            return rounded::sum(a, b);
    });
}

template <unsigned Lanes = kWarp, class Number>
__device__ inline Number warp_min(Number value, unsigned mask = kAllLanes) {
#if __CUDA_ARCH__ >= 800
    if constexpr (reduced_at_once<Lanes, Number>()) return __reduce_min_sync(mask, value);
#endif
    return combine_lanes<Lanes>(value, mask, [](Number a, Number b) { return min(a, b); });
}

template <unsigned Lanes = kWarp, class Number>
__device__ inline Number warp_max(Number value, unsigned mask = kAllLanes) {
#if __CUDA_ARCH__ >= 800
    if constexpr (reduced_at_once<Lanes, Number>()) return __reduce_max_sync(mask, value);
#endif
    return combine_lanes<Lanes>(value, mask, [](Number a, Number b) { return max(a, b); });
}

__device__ inline std::uint32_t warp_or(std::uint32_t value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(kAllLanes, value);
#else
    return combine_lanes<kWarp>(value, kAllLanes,
                                [](std::uint32_t a, std::uint32_t b) { return a | b; });
#endif
}

/// The sum of the integers of all lanes up to and with the calling one.
__device__ inline std::uint32_t sum_up_to_lane(std::uint32_t value) {
    using Scan = cub::WarpScan<std::uint32_t>;
    Scan::TempStorage none;  // it works by shuffles
    Scan(none).InclusiveSum(value, value);
    return value;
}

/// How many of the lanes in `lanes`, a bit each, are before the calling one.
__device__ inline unsigned lanes_before(unsigned lanes, unsigned lane) {
    return __popc(lanes & ((1u << lane) - 1));
}

/// Moves a counter on by the number of lanes in `lanes`, and gives each of these lanes its own
/// place behind where the counter was.
template <class Count>
__device__ inline Count take_places(Count* counter, unsigned lanes, unsigned lane) {
    Count first = 0;
    if (lane == 0) first = atomicAdd(counter, static_cast<Count>(__popc(lanes)));
    return __shfl_sync(kAllLanes, first, 0) + lanes_before(lanes, lane);
}

// Sums of cpp/base/lane_sums.hpp by a warp, to the bit: its lanes are the definition's.
// A lane beyond the last element adds 0 * 0, which changes at most the sign of a zero, and that
// changes no sum that is not zero.

/// The dot product, for every lane of a warp that has all its lanes here.
__device__ inline float warp_lane_dot(const float* a, const float* b, std::uint32_t dimensions,
                                      unsigned lane) {
    float sum = 0;
    for (std::uint32_t i = lane; i < dimensions; i += kWarp)
        sum = __fmaf_rn(__ldg(a + i), __ldg(b + i), sum);
    return warp_sum(sum);
}

/// Adds up 32 values over all lanes, as the definition's tree does: value n's sum is lane n's
/// answer. Half of what a lane has left goes to the other one at each step.
__device__ inline float sum_of_each(float (&values)[kWarp], unsigned lane) {
#pragma unroll
    for (unsigned half = kWarp / 2; half > 0; half /= 2) {
        const bool upper = (lane & half) != 0;
#pragma unroll
        for (unsigned n = 0; n < half; ++n) {
            const float kept = upper ? values[n + half] : values[n];
            const float given = upper ? values[n] : values[n + half];
            values[n] = __fadd_rn(kept, __shfl_xor_sync(kAllLanes, given, half));
        }
    }
    return values[0];
}

}  // namespace gputext::gpu
