// kernels/knn/kth_score.cuh - selects about the k-th best score of a block

#pragma once

#include <cstdint>

#include "kernels/base/warp.cuh"

namespace gputext::gpu {

/// Floats in their order, as integers.
__device__ inline unsigned ordered_float(float value) {
    const unsigned bits = __float_as_uint(value);
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

__device__ inline float float_of_ordered(unsigned ordered) {
    return __uint_as_float(ordered >> 31 ? ordered & 0x7fffffffu : ~ordered);
}

/// A score that at least `k` of the finite ones reach, and hardly more do; 0 if they are fewer. By
/// the block; scores are in shared memory, as ordered_float.
template <unsigned kThreads>
__device__ unsigned about_kth_score(const unsigned* scores, unsigned size, unsigned k) {
    constexpr unsigned kInfinite = 0xff800000u;  // ordered_float(infinity)
    __shared__ unsigned counts[3];               // of this round, the one before and the next
    __shared__ unsigned most;
    if (threadIdx.x == 0) counts[0] = most = 0;
    __syncthreads();
    unsigned own = 0;
    for (unsigned i = threadIdx.x; i < size; i += kThreads)
        if (scores[i] < kInfinite) own = max(own, scores[i]);
    own = warp_max(own);
    if (threadIdx.x % kWarp == 0 && own > 0) atomicMax(&most, own);
    __syncthreads();
    unsigned low = 0;          // reached by k, or 0
    unsigned high = most + 1;  // not reached by k
    // Scores of found items lie close together: steps from the largest one down double first.
    for (unsigned step = 1u << 16, round = 0; high - low > 1; ++round) {
        const unsigned middle = low == 0 && most > step ? most - step : low + (high - low) / 2;
        step = step < 1u << 30 ? 4 * step : UINT32_MAX;
        unsigned mine = 0;
        for (unsigned i = threadIdx.x; i < size; i += kThreads)
            mine += scores[i] >= middle && scores[i] < kInfinite;
        mine = warp_sum(mine);
        if (threadIdx.x % kWarp == 0 && mine > 0) atomicAdd(&counts[round % 3], mine);
        // All have read that count two rounds ago.
        if (threadIdx.x == 0) counts[(round + 1) % 3] = 0;
        __syncthreads();
        const unsigned reached = counts[round % 3];
        if (reached >= k)
            low = middle;
        else
            high = middle;
        if (reached >= k && reached <= k + k / 16) break;
    }
    return low;
}

}  // namespace gputext::gpu
