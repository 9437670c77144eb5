#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <cub/device/device_segmented_sort.cuh>

#include "kernels/base/binary_search.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/knn/detail/score_distance.cuh"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kHalfWarps = kThreads / kHalfWarp;
constexpr unsigned kBlocksPerQuery = 64;

/// Blocks with the same blockIdx.y take the found items of one query.
template <class T>
__global__ __launch_bounds__(kThreads) void score_found(ListsView lists, MergeInput input,
                                                        QuerySelection selection,
                                                        std::uint32_t first,
                                                        unsigned long long* rescored) {
    const std::uint32_t query = selection[first + blockIdx.y];
    const std::size_t begin = std::size_t{query} * lists.capacity;
    const std::uint32_t count = lists.counts[query];
    const std::uint32_t kept = lists.kept[query];
    if (count > lists.capacity) return;
    const unsigned lanes = half_warp_lanes();
    const double limit = lists.limits[query];
    for (std::uint32_t i = kept + blockIdx.x * kHalfWarps + threadIdx.x / kHalfWarp; i < count;
         i += kHalfWarps * gridDim.x) {
        const std::uint32_t items[1] = {lists.items[begin + i]};
        const std::uint64_t key = key_of_item<T>(input, query, items, limit, lanes);
        if (threadIdx.x % kHalfWarp == 0) lists.keys[begin + i] = key;
    }
    if (blockIdx.x == 0 && threadIdx.x == 0)
        atomicAdd(rescored, static_cast<unsigned long long>(count - kept));
}

/// Where the n-th selected list begins, or ends; lists that overflowed are empty.
struct ListBound {
    ListsView lists;
    QuerySelection selection;
    bool end;

    __device__ std::int64_t operator()(std::uint32_t i) const {
        const std::uint32_t query = selection[i];
        const std::int64_t begin = static_cast<std::int64_t>(query) * lists.capacity;
        const std::uint32_t count = lists.counts[query];
        return end && count <= lists.capacity ? begin + count : begin;
    }
};

auto list_bounds(const ListsView& lists, const QuerySelection& selection, bool end) {
    return thrust::make_transform_iterator(thrust::make_counting_iterator(std::uint32_t{0}),
                                           ListBound{lists, selection, end});
}

/// A thread for each query.
__global__ void keep_nearest(ListsView lists, QuerySelection selection, bool open) {
    const std::uint32_t selected = blockIdx.x * blockDim.x + threadIdx.x;
    if (selected >= selection.count) return;
    const std::uint32_t query = selection[selected];
    const std::uint32_t count = lists.counts[query];
    if (count > lists.capacity) return;
    const std::size_t begin = std::size_t{query} * lists.capacity;
    const std::uint32_t kept = partition_point(0u, min(count, lists.k), [&](std::uint32_t i) {
        return lists.keys[begin + i] != kNoDistance;
    });
    lists.kept[query] = kept;
    lists.counts[query] = kept;
    if (kept == lists.k && !open)
        lists.limits[query] = distance_of_key(lists.keys[begin + kept - 1]);
}

}  // namespace

Status NeighborLists::merge_long(const MergeInput& input, const QuerySelection& selection,
                                  unsigned long long* rescored) {
    const ListsView lists = view();
    constexpr std::uint32_t most_y = 65535;
    for (std::uint32_t first = 0; first < selection.count; first += most_y) {
        const dim3 blocks(kBlocksPerQuery, std::min(most_y, selection.count - first));
        with_element_type(input.items.type, [&](auto element) {
            score_found<std::remove_const_t<std::remove_pointer_t<decltype(element)>>>
                <<<blocks, kThreads, 0, stream_>>>(lists, input, selection, first, rescored);
        });
        GPUTEXT_TRY(launched("scoring neighbors"));
    }
    return keep_long(selection);
}

Status NeighborLists::keep_long(const QuerySelection& selection) {
    const ListsView lists = view();
    // By item, and then by distance, which leaves equals as they are.
    const auto begins = list_bounds(lists, selection, false);
    const auto ends = list_bounds(lists, selection, true);
    const auto size = static_cast<std::int64_t>(items_.size());
    const auto segments = static_cast<std::int64_t>(selection.count);
    GPUTEXT_TRY(with_scratch(scratch_, stream_, [&](void* space, std::size_t& bytes) {
        return cub::DeviceSegmentedSort::SortPairs(
            space, bytes, items_.data(), sorted_items_.data(), keys_.data(), sorted_keys_.data(),
            size, segments, begins, ends, stream_);
    }));
    GPUTEXT_TRY(with_scratch(scratch_, stream_, [&](void* space, std::size_t& bytes) {
        return cub::DeviceSegmentedSort::StableSortPairs(
            space, bytes, sorted_keys_.data(), keys_.data(), sorted_items_.data(), items_.data(),
            size, segments, begins, ends, stream_);
    }));
    keep_nearest<<<blocks_for(selection.count, kThreads), kThreads, 0, stream_>>>(lists, selection,
                                                                                  shape_.open);
    return launched("keeping neighbors");
}

}  // namespace gputext::gpu
