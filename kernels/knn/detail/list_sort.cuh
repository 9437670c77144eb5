// kernels/knn/detail/list_sort.cuh - sorts a query's list in shared memory, by a block, and keeps
// the nearest
//
// Bitonic: O(log^2 size) steps. Called by all threads of a block.

#pragma once

#include "kernels/knn/detail/score_distance.cuh"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {

/// A list in shared memory.
struct SharedList {
    std::uint64_t* keys;
    std::uint32_t* items;

    __device__ bool before(unsigned a, unsigned b) const {
        return keys[a] != keys[b] ? keys[a] < keys[b] : items[a] < items[b];
    }
    __device__ void swap(unsigned a, unsigned b) const {
        const std::uint64_t key = keys[a];
        const std::uint32_t item = items[a];
        keys[a] = keys[b];
        items[a] = items[b];
        keys[b] = key;
        items[b] = item;
    }
};

/// `size` is a power of two.
__device__ inline void sort(const SharedList& list, unsigned size) {
    for (unsigned length = 2; length <= size; length *= 2) {
        for (unsigned distance = length / 2; distance > 0; distance /= 2) {
            __syncthreads();
            for (unsigned i = threadIdx.x; i < size / 2; i += blockDim.x) {
                const unsigned a = 2 * i - (i & (distance - 1));
                const unsigned b = a + distance;
                if (((a & length) == 0) == list.before(b, a)) list.swap(a, b);
            }
        }
    }
    __syncthreads();
}

/// Sorts the first `total` entries. The query's list then keeps the nearest of them.
__device__ inline void sort_and_keep(const SharedList& list, unsigned total, const ListsView& lists,
                                     std::uint32_t query, bool open) {
    __shared__ unsigned size;
    const std::size_t begin = std::size_t{query} * lists.capacity;
    unsigned padded = 2;
    while (padded < total) padded *= 2;
    for (unsigned i = total + threadIdx.x; i < padded; i += blockDim.x) {
        list.keys[i] = kNoDistance;
        list.items[i] = UINT32_MAX;
    }
    sort(list, padded);

    // Entries without a distance are last.
    if (threadIdx.x == 0) size = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < min(total, lists.k); i += blockDim.x) {
        if (list.keys[i] == kNoDistance) continue;
        lists.keys[begin + i] = list.keys[i];
        lists.items[begin + i] = list.items[i];
        atomicAdd(&size, 1u);
    }
    __syncthreads();
    if (threadIdx.x != 0) return;
    lists.kept[query] = size;
    lists.counts[query] = size;
    if (size == lists.k && !open) lists.limits[query] = distance_of_key(list.keys[size - 1]);
}

}  // namespace gputext::gpu
