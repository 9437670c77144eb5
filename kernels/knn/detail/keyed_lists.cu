#include "kernels/knn/detail/keyed_lists.hpp"

#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/knn/exact_distance.cuh"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kHalfWarps = kThreads / kHalfWarp;
constexpr unsigned kWarps = kThreads / kWarp;
constexpr unsigned kAtOnce = 4;  // items of a half warp, so that enough reads are under way
constexpr std::uint32_t kPairsEach = 32;  // of a half warp that lists all pairs

/// A query as half warps compare it.
struct KeyedQuery {
    ExactQuery row;
    std::uint32_t key;  // that excludes, where there are such
};

__device__ inline KeyedQuery query_of(const KeyedQueries& queries, std::uint32_t query) {
    const DeviceQueries& rows = queries.rows;
    return {{rows.elements + std::size_t{query} * rows.dimensions, rows.squares[query]},
            rows.keys != nullptr ? rows.keys[query] : 0};
}

/// The distances of kAtOnce places from `first` on, for the half warp's lanes by own_pair(), as
/// ordered bits; kNoDistance beyond `end` and for what is not wanted. `place` becomes the lane's.
template <class T>
__device__ std::uint64_t keys_of_places(const KeyedWanted& wanted, const KeyedQuery& query,
                                        const KeyedItems& items, std::uint32_t first,
                                        std::uint32_t end, unsigned lanes, std::uint32_t& place) {
    const T* rows[kAtOnce];
#pragma unroll
    for (unsigned n = 0; n < kAtOnce; ++n) {
        // Places beyond the end are the last one again: its row is read already.
        const std::uint32_t row = items.row(min(first + n, end - 1));
        rows[n] =
            static_cast<const T*>(items.rows.elements) + std::size_t{row} * items.rows.dimensions;
    }
    const double distance =
        exact_distance(wanted.metric, query.row, rows, items.rows.dimensions, lanes);
    place = first + own_pair<kAtOnce>();
    if (place >= end || !(distance <= wanted.radius)) return kNoDistance;
    if (items.excluded != nullptr && items.excluded[items.ids[place]] == query.key)
        return kNoDistance;
    return ordered_bits(static_cast<std::uint64_t>(__double_as_longlong(distance)));
}

/// A half warp a query.
template <class T>
__global__ void __launch_bounds__(kThreads)
    list_one(KeyedWanted wanted, KeyedQueries queries, KeyedItems items, KeyedLists lists) {
    const std::uint32_t number = blockIdx.x * kHalfWarps + threadIdx.x / kHalfWarp;
    if (number >= queries.rows.rows) return;
    const unsigned lanes = half_warp_lanes();
    const KeyedQuery query = query_of(queries, number);
    const std::uint32_t group = queries.groups[number];
    const std::uint32_t end = items.begins[group + 1];
    std::uint64_t nearest = kNoDistance;
    std::uint32_t nearest_place = UINT32_MAX;
    for (std::uint32_t first = items.begins[group]; first < end; first += kAtOnce) {
        std::uint32_t place;
        const std::uint64_t key = keys_of_places<T>(wanted, query, items, first, end, lanes, place);
        if (key >= nearest) continue;  // of equal ones the first place stays
        nearest = key;
        nearest_place = place;
    }
#pragma unroll
    for (unsigned distance = kHalfWarp / 2; distance >= kHalfWarp / kAtOnce; distance /= 2) {
        const std::uint64_t key = __shfl_xor_sync(lanes, nearest, distance);
        const std::uint32_t place = __shfl_xor_sync(lanes, nearest_place, distance);
        if (key > nearest || (key == nearest && place > nearest_place)) continue;
        nearest = key;
        nearest_place = place;
    }
    if (threadIdx.x % kHalfWarp != 0) return;
    lists.keys[number] = nearest;
    lists.places[number] = nearest_place;
    lists.counts[number] = nearest != kNoDistance;
}

/// A warp a query; lane n keeps the n-th of the nearest so far.
template <class T>
__global__ void __launch_bounds__(kThreads)
    list_some(KeyedWanted wanted, KeyedQueries queries, KeyedItems items, KeyedLists lists) {
    const std::uint32_t number = blockIdx.x * kWarps + threadIdx.x / kWarp;
    if (number >= queries.rows.rows) return;
    const unsigned lane = threadIdx.x % kWarp, lanes = half_warp_lanes();
    const KeyedQuery query = query_of(queries, number);
    const std::uint32_t group = queries.groups[number];
    const std::uint32_t end = items.begins[group + 1];
    std::uint64_t kept = kNoDistance, last = kNoDistance;
    std::uint32_t kept_place = 0;
    for (std::uint32_t base = items.begins[group]; base < end; base += 2 * kAtOnce) {
        std::uint32_t place;
        const std::uint64_t key = keys_of_places<T>(
            wanted, query, items, base + lane / kHalfWarp * kAtOnce, end, lanes, place);
        // Lanes ascend as their places do, and of equal distances the first place is the nearer.
        const bool first_of_pair = lane % (kHalfWarp / kAtOnce) == 0;
        for (unsigned asking = __ballot_sync(kAllLanes, first_of_pair && key < last); asking != 0;
             asking &= asking - 1) {
            const unsigned from = __ffs(static_cast<int>(asking)) - 1;
            const std::uint64_t new_key = __shfl_sync(kAllLanes, key, from);
            const std::uint32_t new_place = __shfl_sync(kAllLanes, place, from);
            const unsigned before = __popc(__ballot_sync(kAllLanes, kept <= new_key));
            const std::uint64_t moved = __shfl_up_sync(kAllLanes, kept, 1);
            const std::uint32_t moved_place = __shfl_up_sync(kAllLanes, kept_place, 1);
            if (lane < before) continue;
            kept = lane == before ? new_key : moved;
            kept_place = lane == before ? new_place : moved_place;
        }
        last = __shfl_sync(kAllLanes, kept, wanted.k - 1);
    }
    if (lane < wanted.k) {
        const std::size_t at = std::size_t{number} * wanted.k + lane;
        lists.keys[at] = kept;
        lists.places[at] = kept_place;
    }
    const unsigned found = __ballot_sync(kAllLanes, lane < wanted.k && kept != kNoDistance);
    if (lane == 0) lists.counts[number] = __popc(found);
}

/// The query whose list place `at` lies in: the last one that begins at or before it. Lists of no
/// places are passed over.
__device__ inline std::uint32_t query_at(const std::uint32_t* begins, std::uint32_t queries,
                                         std::uint32_t at) {
    std::uint32_t low = 0, high = queries - 1;
    while (low < high) {
        const std::uint32_t middle = low + (high - low + 1) / 2;
        if (begins[middle] <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/// A half warp for each kPairsEach places of the lists, which may be of several queries.
template <class T>
__global__ void __launch_bounds__(kThreads)
    list_pairs(KeyedWanted wanted, KeyedQueries queries, KeyedItems items, KeyedLists lists,
               std::uint32_t pairs) {
    const std::uint32_t own = blockIdx.x * kHalfWarps + threadIdx.x / kHalfWarp;
    std::uint32_t at = own * kPairsEach;
    if (at >= pairs) return;
    const std::uint32_t last = min(pairs - at, kPairsEach) + at;
    const unsigned lanes = half_warp_lanes();
    std::uint32_t number = query_at(lists.begins, queries.rows.rows, at);
    for (; at < last; ++number) {
        const std::uint32_t list = lists.begins[number];
        const std::uint32_t end_of_list = min(last, lists.begins[number + 1]);
        if (at >= end_of_list) continue;
        const KeyedQuery query = query_of(queries, number);
        const std::uint32_t shift = items.begins[queries.groups[number]] - list;
        for (; at < end_of_list; at += kAtOnce) {
            std::uint32_t place;
            const std::uint64_t key = keys_of_places<T>(wanted, query, items, at + shift,
                                                        end_of_list + shift, lanes, place);
            if (threadIdx.x % (kHalfWarp / kAtOnce) != 0 || place >= end_of_list + shift) continue;
            lists.keys[place - shift] = key;
            lists.places[place - shift] = place;
        }
        at = end_of_list;
    }
}

/// The first of [begin, end) whose key is above `key`, or `end`.
__device__ inline std::uint32_t first_above(const std::uint64_t* keys, std::uint32_t begin,
                                            std::uint32_t end, std::uint64_t key) {
    while (begin < end) {
        const std::uint32_t middle = begin + (end - begin) / 2;
        if (keys[middle] <= key)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/// A thread a query.
__global__ void count_wanted(KeyedWanted wanted, KeyedLists lists, std::uint32_t queries) {
    const std::uint32_t query = blockIdx.x * kThreads + threadIdx.x;
    if (query >= queries) return;
    const std::uint32_t begin = lists.begins[query];
    std::uint32_t end = first_above(lists.keys, begin, lists.begins[query + 1], kNoDistance - 1);
    if (end - begin > wanted.k) {
        const std::uint32_t cut = begin + wanted.k;
        end = wanted.include_ties ? first_above(lists.keys, cut, end, lists.keys[cut - 1]) : cut;
    }
    lists.counts[query] = end - begin;
}

/// A half warp a query.
__global__ void pack_lists(KeyedLists lists, std::uint32_t queries, const std::uint32_t* ids,
                           const std::uint32_t* offsets, std::uint32_t* items, double* distances) {
    const std::uint32_t query = blockIdx.x * kHalfWarps + threadIdx.x / kHalfWarp;
    if (query >= queries) return;
    const std::uint32_t begin = lists.begin(query), to = offsets[query];
    const std::uint32_t count = offsets[query + 1] - to;
    for (std::uint32_t n = threadIdx.x % kHalfWarp; n < count; n += kHalfWarp) {
        items[to + n] = ids[lists.places[begin + n]];
        distances[to + n] =
            __longlong_as_double(static_cast<long long>(bits_of_ordered(lists.keys[begin + n])));
    }
}

}  // namespace

Status list_nearest(const KeyedWanted& wanted, const KeyedQueries& queries, const KeyedItems& items,
                    const KeyedLists& lists, cudaStream_t stream) {
    const std::uint32_t count = queries.rows.rows;
    if (count == 0) return {};
    with_element_type(items.rows.type, [&](auto element) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(element)>>;
        if (wanted.k == 1)
            list_one<T><<<blocks_for(count, kHalfWarps), kThreads, 0, stream>>>(wanted, queries,
                                                                                items, lists);
        else
            list_some<T>
                <<<blocks_for(count, kWarps), kThreads, 0, stream>>>(wanted, queries, items, lists);
    });
    return launched("finding the nearest items of groups");
}

Status SortedLists::allocate(std::size_t pairs, cudaStream_t stream) {
    stream_ = stream;
    GPUTEXT_TRY(keys_.allocate(pairs, stream));
    GPUTEXT_TRY(other_keys_.allocate(pairs, stream));
    GPUTEXT_TRY(places_.allocate(pairs, stream));
    return other_places_.allocate(pairs, stream);
}

Status SortedLists::list_all(const KeyedWanted& wanted, const KeyedQueries& queries,
                             const KeyedItems& items, const std::uint32_t* begins,
                             std::uint32_t pairs, std::uint32_t* counts, KeyedLists& lists) {
    const std::uint32_t count = queries.rows.rows;
    lists = {begins, 0, keys_.data(), places_.data(), counts};
    if (count == 0) return {};
    if (pairs > 0) {
        with_element_type(items.rows.type, [&](auto element) {
            using T = std::remove_const_t<std::remove_pointer_t<decltype(element)>>;
            const unsigned blocks = blocks_for(pairs, kPairsEach * kHalfWarps);
            list_pairs<T><<<blocks, kThreads, 0, stream_>>>(wanted, queries, items, lists, pairs);
        });
        GPUTEXT_TRY(launched("listing the items of groups"));
    }
    cub::DoubleBuffer<std::uint64_t> keys(keys_.data(), other_keys_.data());
    cub::DoubleBuffer<std::uint32_t> places(places_.data(), other_places_.data());
    GPUTEXT_TRY(with_scratch(scratch_, stream_, [&](void* scratch, std::size_t& bytes) {
        // Places ascend before, and so do those of equal distances behind it.
        return cub::DeviceSegmentedSort::StableSortPairs(scratch, bytes, keys, places, pairs, count,
                                                         begins, begins + 1, stream_);
    }));
    lists.keys = keys.Current();
    lists.places = places.Current();
    count_wanted<<<blocks_for(count, kThreads), kThreads, 0, stream_>>>(wanted, lists, count);
    return launched("counting neighbors");
}

Status KeyedPacking::offsets(const KeyedLists& lists, std::uint32_t queries, std::uint32_t* offsets,
                             std::uint32_t& total, cudaStream_t stream) {
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(offsets, 0, sizeof *offsets, stream), "counting neighbors"));
    GPUTEXT_TRY(with_scratch(scratch_, stream, [&](void* scratch, std::size_t& bytes) {
        return cub::DeviceScan::InclusiveSum(scratch, bytes, lists.counts, offsets + 1, queries,
                                             stream);
    }));
    return download_value(offsets + queries, total, stream, "counting neighbors");
}

Status KeyedPacking::pack(const KeyedLists& lists, std::uint32_t queries, const std::uint32_t* ids,
                          const std::uint32_t* offsets, std::uint32_t* items, double* distances,
                          cudaStream_t stream) {
    if (queries == 0) return {};
    pack_lists<<<blocks_for(queries, kHalfWarps), kThreads, 0, stream>>>(lists, queries, ids,
                                                                         offsets, items, distances);
    return launched("packing neighbors");
}

}  // namespace gputext::gpu
