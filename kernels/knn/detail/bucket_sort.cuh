// kernels/knn/detail/bucket_sort.cuh - keeps the nearest of a list in shared memory, by a block
// that puts them into buckets by their distances
//
// A list's distances become ever more frequent towards the largest. So buckets of equal width cover
// four times what the largest lies above the mean, and all nearer ones have the first bucket. Which
// bucket a distance has never descends from one distance to a larger one. An item's rank is the
// number of items in buckets before, and of those before it in its own. The mean decides how full
// buckets are, and nothing else. Steps do not depend on the size, but for lists with more items
// than a block's threads, where they are as many times more.

#pragma once

#include "kernels/base/warp.cuh"
#include "kernels/knn/detail/list_sort.cuh"
#include "kernels/knn/detail/score_distance.cuh"

namespace gputext::gpu {

/// Which bucket a distance has.
struct Buckets {
    float low, scale;
    unsigned last;

    __device__ unsigned of(std::uint64_t key) const {
        const float above = __fsub_rn(static_cast<float>(distance_of_key(key)), low);
        // Of NaN, which is no distance, the first one.
        const float bucket = fmaxf(0, __fmul_rn(above, scale));
        return bucket < static_cast<float>(last) ? static_cast<unsigned>(bucket) : last;
    }
};

/// How many buckets a block of so many threads has: a multiple of them, where they are a power of
/// two.
__host__ __device__ inline unsigned bucket_count(unsigned threads) {
    return threads < 512 ? 512 : threads;
}

/// Memory of such a block, with the list's.
inline std::size_t bucket_sort_bytes(std::size_t capacity, unsigned threads) {
    return capacity * (sizeof(std::uint64_t) + sizeof(std::uint32_t) + sizeof(std::uint16_t)) +
           bucket_count(threads) * sizeof(unsigned);
}

/// Makes the nearest of the first `count` entries, which are at most 65536, what the query's list
/// keeps, as sort_and_keep() does. Otherwise, where a bucket has too many, returns false to all
/// threads and changes neither list. `order` has room for the entries, `ends` for bucket_count()
/// numbers of the block, which has a power of two of threads, whole warps. The entries have been
/// written before a barrier.
__device__ inline bool keep_by_buckets(const SharedList& list, std::uint16_t* order, unsigned* ends,
                                       unsigned count, const ListsView& lists, std::uint32_t query,
                                       bool open) {
    constexpr unsigned kMostInBucket = 48;
    __shared__ float sums[kWarp], mosts[kWarp];
    __shared__ unsigned counts[kWarp];
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warp = threadIdx.x / kWarp;
    const unsigned warps = blockDim.x / kWarp;
    const unsigned all = bucket_count(blockDim.x);
    float sum = 0, most = -INFINITY;
    unsigned size = 0;
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
        if (list.keys[i] == kNoDistance) continue;
        const auto distance = static_cast<float>(distance_of_key(list.keys[i]));
        sum += distance;
        most = fmaxf(most, distance);
        ++size;
    }
    sum = warp_sum(sum);
    most = warp_max(most);
    size = warp_sum(size);
    if (lane == 0) {
        sums[warp] = sum;
        mosts[warp] = most;
        counts[warp] = size;
    }
    for (unsigned bucket = threadIdx.x; bucket < all; bucket += blockDim.x) ends[bucket] = 0;
    __syncthreads();
    // Every warp computes the same.
    sum = warp_sum(lane < warps ? sums[lane] : 0.0f);
    most = warp_max(lane < warps ? mosts[lane] : -INFINITY);
    size = warp_sum(lane < warps ? counts[lane] : 0u);
    const float spread = 4 * (most - sum / static_cast<float>(size));
    if (!(spread > 1e-30f && spread < 1e30f)) return false;
    const Buckets buckets{most - spread, static_cast<float>(all) / spread, all - 1};
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
        if (list.keys[i] != kNoDistance) atomicAdd(&ends[buckets.of(list.keys[i])], 1u);
    __syncthreads();
    // A thread's buckets are one behind the other.
    const unsigned each = all / blockDim.x;
    unsigned* const own = ends + threadIdx.x * each;
    unsigned own_size = 0, fullest = 0;
    for (unsigned bucket = 0; bucket < each; ++bucket) {
        own_size += own[bucket];
        fullest = max(fullest, own[bucket]);
    }
    const unsigned up_to_own = sum_up_to_lane(own_size);
    if (lane == kWarp - 1) counts[warp] = up_to_own;
    if (__syncthreads_or(fullest > kMostInBucket)) return false;
    unsigned begin_of_own = warp_sum(lane < warp ? counts[lane] : 0u) + up_to_own - own_size;
    for (unsigned bucket = 0; bucket < each; ++bucket) {
        const unsigned in_bucket = own[bucket];
        own[bucket] = begin_of_own;  // which becomes the end below
        begin_of_own += in_bucket;
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += blockDim.x)
        if (list.keys[i] != kNoDistance)
            order[atomicAdd(&ends[buckets.of(list.keys[i])], 1u)] = static_cast<std::uint16_t>(i);
    __syncthreads();
    const std::size_t to = std::size_t{query} * lists.capacity;
    for (unsigned place = threadIdx.x; place < size; place += blockDim.x) {
        const unsigned i = order[place];
        const unsigned bucket = buckets.of(list.keys[i]);
        const unsigned begin = bucket == 0 ? 0 : ends[bucket - 1];
        unsigned rank = begin;
        for (unsigned other = begin; other < ends[bucket]; ++other)
            rank += list.before(order[other], i);
        if (rank >= lists.k) continue;
        lists.keys[to + rank] = list.keys[i];
        lists.items[to + rank] = list.items[i];
        if (rank + 1 == lists.k && !open) lists.limits[query] = distance_of_key(list.keys[i]);
    }
    if (threadIdx.x != 0) return true;
    const unsigned kept = min(size, lists.k);
    lists.kept[query] = kept;
    lists.counts[query] = kept;
    return true;
}

}  // namespace gputext::gpu
