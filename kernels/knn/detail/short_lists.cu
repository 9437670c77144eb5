#include <algorithm>

#include "kernels/base/early_launch.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/knn/detail/list_sort.cuh"
#include "kernels/knn/detail/score_distance.cuh"
#include "kernels/knn/kth_score.cuh"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {

// A block keeps the nearest of a list in shared memory: it puts them into buckets by distance.
//
// A list's distances become ever more frequent towards the largest. So buckets of equal width cover
// four times what the largest lies above the mean, and all nearer ones have the first bucket. Which
// bucket a distance has never descends from one distance to a larger one. An item's rank is the
// number of items in buckets before, and of those before it in its own. The mean decides how full
// buckets are, and nothing else. Steps do not depend on the size, but for lists with more items
// than a block's threads, where they are as many times more.

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

Status NeighborLists::merge_short(const MergeInput& input, const QuerySelection& selection,
                                   unsigned long long* rescored) {
    const std::uint32_t parts = parts_of_list(selection.count);
    return with_element_type(input.items.type, [&](auto element) {
        using Element = std::remove_const_t<std::remove_pointer_t<decltype(element)>>;
        if (parts > 1) {
            GPUTEXT_TRY(launch_early(
                "scoring neighbors", score_parts<Element>, dim3(parts, selection.count), kThreads,
                shape_.capacity * sizeof(unsigned), stream_, view(), input, selection, rescored));
            return keep_short(selection, {});
        }
        const std::size_t bytes = list_bytes(shape_.capacity);
        const auto kernel = merge_lists<Element>;
        GPUTEXT_TRY(allow_shared_bytes(kernel, bytes));
        kernel<<<selection.count, kThreads, bytes, stream_>>>(view(), input, selection, shape_.open,
                                                              rescored);
        return launched("merging neighbors");
    });
}

Status NeighborLists::keep_short(const QuerySelection& selection, const FailedLists& failed) {
    // Few blocks have all multiprocessors to themselves.
    const unsigned threads = selection.count > kFewQueries
                                 ? kThreads
                                 : std::clamp(shape_.capacity / 4, kThreads, kMostThreads);
    const std::size_t bytes = bucket_sort_bytes(shape_.capacity, threads);
    GPUTEXT_TRY(allow_shared_bytes(keep_scored, bytes));
    return launch_early("keeping neighbors", keep_scored, selection.count, threads, bytes, stream_,
                        view(), selection, shape_.open, failed);
}

}  // namespace gputext::gpu
