// kernels/base/lane_sums.cuh - sums of cpp/base/lane_sums.hpp by a warp, to the bit: its lanes are
// the definition's
//
// A lane beyond the last element adds 0 * 0, which changes at most the sign of a zero, and that
// changes no sum that is not zero.

#pragma once

#include <cstdint>

#include "kernels/base/warp.cuh"

namespace gputext::gpu {

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
