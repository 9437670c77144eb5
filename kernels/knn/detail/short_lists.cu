#include <algorithm>

#include "kernels/base/early_launch.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/knn/detail/bucket_sort.cuh"
#include "kernels/knn/detail/list_sort.cuh"
#include "kernels/knn/detail/score_distance.cuh"
#include "kernels/knn/kth_score.cuh"
#include "kernels/knn/neighbour_lists.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kHalfWarps = kThreads / kHalfWarp;
constexpr unsigned kAtOnce = 4;  // items of a half warp
constexpr unsigned kMostThreads = 1024;
constexpr std::uint32_t kFewQueries = 128;
constexpr std::uint32_t kMostParts = 32;
constexpr std::uint32_t kBlocksOfParts = 256;  // two for each multiprocessor of a large device

/// A block for each query: found items have keys already. `failed`: takes the list back at the end
/// if it overflowed or is not proven, where its queries are not null.
__global__ __launch_bounds__(kMostThreads) void keep_scored(ListsView lists,
                                                            QuerySelection selection, bool open,
                                                            FailedLists failed) {
    extern __shared__ std::uint64_t memory[];
    let_next_begin();
    wait_for_previous();
    const SharedList list{memory, reinterpret_cast<std::uint32_t*>(memory + lists.capacity)};
    auto* const ends = list.items + lists.capacity;
    auto* const order = reinterpret_cast<std::uint16_t*>(ends + bucket_count(blockDim.x));
    const std::uint32_t query = selection[blockIdx.x];
    const std::size_t begin = std::size_t{query} * lists.capacity;
    const std::uint32_t count = lists.counts[query];
    if (count <= lists.capacity && count != lists.kept[query]) {
        for (unsigned i = threadIdx.x; i < count; i += blockDim.x) {
            list.keys[i] = lists.keys[begin + i];
            list.items[i] = lists.items[begin + i];
        }
        __syncthreads();
        if (!keep_by_buckets(list, order, ends, count, lists, query, open))
            sort_and_keep(list, count, lists, query, open);
    }
    if (failed.queries == nullptr) return;
    __syncthreads();
    if (threadIdx.x != 0) return;
    take_if_failed(lists, query, failed);
    report_failed(failed);
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

/// Scores below it are not needed; -infinity where scores do not tell. By the block.
__device__ float least_score(const ListsView& lists, const MergeInput& input, std::uint32_t query,
                             unsigned* shared) {
    const std::uint32_t count = lists.counts[query];
    if (input.score_widths == nullptr || lists.kept[query] != 0 || count <= lists.k)
        return -INFINITY;
    return least_useful_score(lists, input, query, count, shared);
}

__device__ bool is_useful(const ListsView& lists, std::size_t place, float least) {
    return lists.scores == nullptr || !(lists.scores[place] < least);
}

/// What was found for a query, into shared memory behind what is kept, without what the scores tell
/// is not needed. By the block; `size` is as many as there are then.
__device__ void take_found(const ListsView& lists, const MergeInput& input, std::uint32_t query,
                           const SharedList& list, unsigned& size) {
    const std::size_t begin = std::size_t{query} * lists.capacity;
    const std::uint32_t count = lists.counts[query];
    const std::uint32_t kept = lists.kept[query];
    const float least = least_score(lists, input, query, reinterpret_cast<unsigned*>(list.keys));
    if (threadIdx.x == 0) size = kept;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < count; i += kThreads) {
        const std::uint32_t item = lists.items[begin + i];
        if (i < kept) {
            list.items[i] = item;
            list.keys[i] = lists.keys[begin + i];
        } else if (is_useful(lists, begin + i, least)) {
            list.items[atomicAdd(&size, 1u)] = item;
        }
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
    const std::uint32_t count = lists.counts[query];
    if (count > lists.capacity || count == kept) return;
    take_found(lists, input, query, list, size);
    const unsigned total = size;
    if (total == 0) return;
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

/// Blocks of one y write the keys of what was found for one query.
template <class T>
__global__ __launch_bounds__(kThreads) void score_parts(ListsView lists, MergeInput input,
                                                        QuerySelection selection,
                                                        unsigned long long* rescored) {
    extern __shared__ unsigned places[];
    __shared__ unsigned size;
    let_next_begin();
    wait_for_previous();
    const std::uint32_t query = selection[blockIdx.y];
    const std::size_t begin = std::size_t{query} * lists.capacity;
    const std::uint32_t kept = lists.kept[query];
    const std::uint32_t count = lists.counts[query];
    if (count > lists.capacity || count == kept) return;
    const float least = least_score(lists, input, query, places);
    if (threadIdx.x == 0) size = 0;
    __syncthreads();
    for (unsigned i = kept + blockIdx.x + threadIdx.x * gridDim.x; i < count;
         i += kThreads * gridDim.x) {
        if (is_useful(lists, begin + i, least))
            places[atomicAdd(&size, 1u)] = i;
        else
            lists.keys[begin + i] = kNoDistance;
    }
    __syncthreads();
    const unsigned total = size;
    if (total == 0) return;
    const unsigned lanes = half_warp_lanes();
    const double limit = lists.limits[query];
    for (unsigned base = threadIdx.x / kHalfWarp; base < total; base += kAtOnce * kHalfWarps) {
        std::uint32_t items[kAtOnce];
#pragma unroll
        for (unsigned n = 0; n < kAtOnce; ++n)
            items[n] = lists.items[begin + places[min(base + n * kHalfWarps, total - 1)]];
        const std::uint64_t key = key_of_item<T>(input, query, items, limit, lanes);
        const unsigned own = base + own_pair<kAtOnce>() * kHalfWarps;
        if (threadIdx.x % (kHalfWarp / kAtOnce) == 0 && own < total)
            lists.keys[begin + places[own]] = key;
    }
    if (threadIdx.x == 0) atomicAdd(rescored, static_cast<unsigned long long>(total));
}

/// Blocks that a query's list is shared out to, where queries are few.
std::uint32_t parts_of_list(std::uint32_t queries) {
    return std::clamp(kBlocksOfParts / queries, 1u, kMostParts);
}

std::size_t list_bytes(std::uint32_t capacity) {
    return capacity * (sizeof(std::uint64_t) + sizeof(std::uint32_t));
}

}  // namespace

Status NeighbourLists::merge_short(const MergeInput& input, const QuerySelection& selection,
                                   unsigned long long* rescored) {
    const std::uint32_t parts = parts_of_list(selection.count);
    return with_element_type(input.items.type, [&](auto element) {
        using Element = std::remove_const_t<std::remove_pointer_t<decltype(element)>>;
        if (parts > 1) {
            GPUTEXT_TRY(launch_early(
                "scoring neighbours", score_parts<Element>, dim3(parts, selection.count), kThreads,
                shape_.capacity * sizeof(unsigned), stream_, view(), input, selection, rescored));
            return keep_short(selection, {});
        }
        const std::size_t bytes = list_bytes(shape_.capacity);
        const auto kernel = merge_lists<Element>;
        GPUTEXT_TRY(allow_shared_bytes(kernel, bytes));
        kernel<<<selection.count, kThreads, bytes, stream_>>>(view(), input, selection, shape_.open,
                                                              rescored);
        return launched("merging neighbours");
    });
}

Status NeighbourLists::keep_short(const QuerySelection& selection, const FailedLists& failed) {
    // Few blocks have all multiprocessors to themselves.
    const unsigned threads = selection.count > kFewQueries
                                 ? kThreads
                                 : std::clamp(shape_.capacity / 4, kThreads, kMostThreads);
    const std::size_t bytes = bucket_sort_bytes(shape_.capacity, threads);
    GPUTEXT_TRY(allow_shared_bytes(keep_scored, bytes));
    return launch_early("keeping neighbours", keep_scored, selection.count, threads, bytes, stream_,
                        view(), selection, shape_.open, failed);
}

}  // namespace gputext::gpu
