#include "kernels/kth_score.cuh"
#include "kernels/launch.hpp"
#include "kernels/neighbour_lists.hpp"
#include "kernels/score_distance.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kHalfWarps = kThreads / kHalfWarp;
constexpr unsigned kAtOnce = 4;  // items of a half warp

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

/// Bitonic, by the block; `size` is a power of two.
__device__ void sort(const SharedList& list, unsigned size) {
    for (unsigned length = 2; length <= size; length *= 2) {
        for (unsigned distance = length / 2; distance > 0; distance /= 2) {
            __syncthreads();
            for (unsigned i = threadIdx.x; i < size / 2; i += kThreads) {
                const unsigned a = 2 * i - (i & (distance - 1));
                const unsigned b = a + distance;
                if (((a & length) == 0) == list.before(b, a)) list.swap(a, b);
            }
        }
    }
    __syncthreads();
}

/// Sorts the first `total`, and makes the nearest of them what the query's list keeps. By the
/// block.
__device__ void sort_and_keep(const SharedList& list, unsigned total, const ListsView& lists,
                              std::uint32_t query, bool open) {
    __shared__ unsigned size;
    const std::size_t begin = std::size_t{query} * lists.capacity;
    unsigned padded = 2;
    while (padded < total) padded *= 2;
    for (unsigned i = total + threadIdx.x; i < padded; i += kThreads) {
        list.keys[i] = kNoDistance;
        list.items[i] = UINT32_MAX;
    }
    sort(list, padded);

    // Those without a distance are last.
    if (threadIdx.x == 0) size = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < min(total, lists.k); i += kThreads) {
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

/// A block for each query: found items have keys already.
__global__ __launch_bounds__(kThreads) void keep_scored(ListsView lists, QuerySelection selection,
                                                        bool open) {
    extern __shared__ std::uint64_t memory[];
    __shared__ unsigned size;
    const SharedList list{memory, reinterpret_cast<std::uint32_t*>(memory + lists.capacity)};
    const std::uint32_t query = selection[blockIdx.x];
    const std::size_t begin = std::size_t{query} * lists.capacity;
    const std::uint32_t count = lists.counts[query];
    if (count > lists.capacity || count == lists.kept[query]) return;
    if (threadIdx.x == 0) size = 0;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += kThreads) {
        const std::uint64_t key = lists.keys[begin + i];
        if (key == kNoDistance) continue;
        const unsigned at = atomicAdd(&size, 1u);
        list.keys[at] = key;
        list.items[at] = lists.items[begin + i];
    }
    __syncthreads();
    sort_and_keep(list, size, lists, query, open);
}

/// The least score of a list's found items that may be among the k nearest.
__device__ float least_useful_score(const ListsView& lists, const MergeInput& input,
                                    std::uint32_t query, unsigned size, unsigned* shared) {
    const std::size_t begin = std::size_t{query} * lists.capacity;
    const float width = input.score_widths[query];
    for (unsigned i = threadIdx.x; i < size; i += kThreads) {
        const bool excluded = input.queries.keys != nullptr &&
                              input.queries.keys[query] == input.item_keys[lists.items[begin + i]];
        shared[i] = excluded ? 0 : ordered_float(lists.scores[begin + i]);
    }
    __syncthreads();
    const unsigned kth = about_kth_score<kThreads>(shared, size, lists.k);
    __syncthreads();
    if (kth == 0) return -INFINITY;
    return __fsub_rd(float_of_ordered(kth), width);
}

/// What was found for a query, into shared memory behind what is kept, without what the scores tell
/// is not needed. By the block; `size` is as many as there are then.
__device__ void take_found(const ListsView& lists, const MergeInput& input, std::uint32_t query,
                           const SharedList& list, unsigned& size) {
    const std::size_t begin = std::size_t{query} * lists.capacity;
    const std::uint32_t count = lists.counts[query];
    const std::uint32_t kept = lists.kept[query];
    float least = -INFINITY;
    if (input.score_widths != nullptr && kept == 0 && count > lists.k)
        least =
            least_useful_score(lists, input, query, count, reinterpret_cast<unsigned*>(list.keys));
    if (threadIdx.x == 0) size = kept;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += kThreads) {
        const std::uint32_t item = lists.items[begin + i];
        if (i < kept) {
            list.items[i] = item;
            list.keys[i] = lists.keys[begin + i];
        } else if (lists.scores == nullptr || !(lists.scores[begin + i] < least)) {
            list.items[atomicAdd(&size, 1u)] = item;
        }
    }
    __syncthreads();
}

/// The same of what was marked for it. `size` may come out above the capacity, and the list is of
/// no use then.
__device__ void take_marked(const MarkedItems& marked, std::uint32_t capacity, std::uint32_t query,
                            const SharedList& list, unsigned& size) {
    if (threadIdx.x == 0) size = 0;
    __syncthreads();
    const std::uint32_t* words = marked.words + std::size_t{query} * marked.per_query;
    for (unsigned i = threadIdx.x; i < marked.per_query; i += kThreads) {
        unsigned bits = words[i];
        if (bits == 0) continue;
        unsigned at = atomicAdd(&size, __popc(bits));
        for (; bits != 0 && at < capacity; bits &= bits - 1, ++at)
            list.items[at] = marked.item(i, __ffs(static_cast<int>(bits)) - 1);
    }
    __syncthreads();
}

/// A block for each query.
template <class T>
__global__ __launch_bounds__(kThreads) void merge_lists(ListsView lists, MergeInput input,
                                                        QuerySelection selection, bool open,
                                                        unsigned long long* rescored) {
    extern __shared__ std::uint64_t memory[];
    __shared__ unsigned size;
    const SharedList list{memory, reinterpret_cast<std::uint32_t*>(memory + lists.capacity)};
    const std::uint32_t query = selection[blockIdx.x];
    const std::uint32_t kept = lists.kept[query];
    if (input.marked.words != nullptr) {
        take_marked(input.marked, lists.capacity, query, list, size);
        if (size > lists.capacity && threadIdx.x == 0) lists.counts[query] = size;
    } else {
        const std::uint32_t count = lists.counts[query];
        if (count > lists.capacity || count == kept) return;
        take_found(lists, input, query, list, size);
    }
    const unsigned total = size;
    if (total > lists.capacity || total == 0) return;
    const unsigned lanes = half_warp_lanes();
    const double limit = lists.limits[query];
    for (unsigned base = kept + threadIdx.x / kHalfWarp; base < total;
         base += kAtOnce * kHalfWarps) {
        std::uint32_t items[kAtOnce];
#pragma unroll
        for (unsigned n = 0; n < kAtOnce; ++n)
            items[n] = list.items[min(base + n * kHalfWarps, total - 1)];
        const std::uint64_t key = key_of_item<T>(input, query, items, limit, lanes);
        const unsigned own = base + own_pair<kAtOnce>() * kHalfWarps;
        if (threadIdx.x % (kHalfWarp / kAtOnce) == 0 && own < total) list.keys[own] = key;
    }
    sort_and_keep(list, total, lists, query, open);
    if (threadIdx.x == 0) atomicAdd(rescored, static_cast<unsigned long long>(total - kept));
}

std::size_t list_bytes(std::uint32_t capacity) {
    return capacity * (sizeof(std::uint64_t) + sizeof(std::uint32_t));
}

}  // namespace

Status NeighbourLists::merge_short(const MergeInput& input, const QuerySelection& selection,
                                   unsigned long long* rescored) {
    const std::size_t bytes = list_bytes(shape_.capacity);
    return with_element_type(input.items.type, [&](auto element) {
        const auto kernel =
            merge_lists<std::remove_const_t<std::remove_pointer_t<decltype(element)>>>;
        GPUTEXT_TRY(allow_shared_bytes(kernel, bytes));
        kernel<<<selection.count, kThreads, bytes, stream_>>>(view(), input, selection, shape_.open,
                                                              rescored);
        return launched("merging neighbours");
    });
}

Status NeighbourLists::keep_short(const QuerySelection& selection) {
    const std::size_t bytes = list_bytes(shape_.capacity);
    GPUTEXT_TRY(allow_shared_bytes(keep_scored, bytes));
    keep_scored<<<selection.count, kThreads, bytes, stream_>>>(view(), selection, shape_.open);
    return launched("keeping neighbours");
}

}  // namespace gputext::gpu
