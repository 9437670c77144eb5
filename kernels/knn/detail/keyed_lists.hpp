// kernels/knn/detail/keyed_lists.hpp - the nearest items of queries among those of the query's
// group, where a group has few
//
// Every distance is exact (kernels/knn/exact_distance.cuh): where a query has a few items, or a few
// thousand, reading their rows takes the time, and a filter could save none of that. Rows are read
// where they lie, whole ones, in the order of a group's places.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cpp/knn/distance.hpp"
#include "kernels/base/cuda_status.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/knn/detail/device_rows.hpp"

namespace gputext::gpu {

/// Items by group: group g has the places [begins[g], begins[g + 1]), in the order of items. All on
/// the device.
struct KeyedItems {
    DeviceRows rows;
    const std::uint32_t* ids = nullptr;       // of each place
    const std::uint32_t* begins = nullptr;    // of each group
    const std::uint32_t* excluded = nullptr;  // of each item, by id: as RowKeys::items, or null
    bool by_place = false;  // whether the row of a place is that of its number, or of its id

    __host__ __device__ std::uint32_t row(std::uint32_t place) const {
        return by_place ? place : ids[place];
    }
};

/// Queries of a tile, all on the device. The rows' keys are those that exclude.
struct KeyedQueries {
    DeviceQueries rows;
    const std::uint32_t* groups = nullptr;  // of each query: the number of its group
};

/// Which items are wanted.
struct KeyedWanted {
    Metric metric;
    double radius;
    std::uint32_t k;
    bool include_ties;
};

/// Neighbors that were found, list by list.
struct KeyedLists {
    /// Of each query and the end of the last list; null where each has `stride` places.
    const std::uint32_t* begins = nullptr;
    std::uint32_t stride = 0;
    std::uint64_t* keys = nullptr;    // ordered_bits() of distances
    std::uint32_t* places = nullptr;  // of the items
    std::uint32_t* counts = nullptr;  // of each query

    __host__ __device__ std::uint32_t begin(std::uint32_t query) const {
        return begins != nullptr ? begins[query] : query * stride;
    }
};

/// The most neighbors that list_nearest() keeps for a query.
inline constexpr std::uint32_t kMostListed = 32;

/// Lists of at most k neighbors, kMostListed or fewer, of stride k; ties at the last place are not
/// looked for. A half warp or a warp goes over all items of a query: groups should have a few
/// thousand at most. O(pairs * dimensions).
Status list_nearest(const KeyedWanted& wanted, const KeyedQueries& queries, const KeyedItems& items,
                    const KeyedLists& lists, cudaStream_t stream);

/// Lists of all items of each query's group, in order; counts[q] becomes the number of those that
/// are wanted, which are the first ones. Any number of items. `begins` says where the lists are,
/// which has `pairs` places; `others` are as many keys and places, for scratch, and may be
/// exchanged with the lists' own. O(pairs * dimensions), and sorting.
class SortedLists {
public:
    /// Of `pairs` places for `queries` queries. Bytes of the device's memory, about.
    static std::size_t bytes(std::size_t queries, std::size_t pairs) {
        return pairs * kBytesOfPair + queries * kBytesOfQuery;
    }
    static constexpr std::size_t kBytesOfPair = 2 * (sizeof(std::uint64_t) + sizeof(std::uint32_t));
    static constexpr std::size_t kBytesOfQuery = 8 * sizeof(std::uint32_t);

    /// Errors: out_of_memory, device_error.
    Status allocate(std::size_t pairs, cudaStream_t stream);
    /// The lists are valid until the next call.
    Status list_all(const KeyedWanted& wanted, const KeyedQueries& queries, const KeyedItems& items,
                    const std::uint32_t* begins, std::uint32_t pairs, std::uint32_t* counts,
                    KeyedLists& lists);

private:
    cudaStream_t stream_ = nullptr;
    DeviceBuffer<std::uint64_t> keys_, other_keys_;
    DeviceBuffer<std::uint32_t> places_, other_places_;
    DeviceBuffer<std::uint8_t> scratch_;
};

/// Puts lists one behind the other, with the items' ids and distances. offsets[q] becomes the begin
/// of query q's, and offsets[queries] the end, of which `total` is told; waits for the stream. The
/// arrays have room for all lists.
class KeyedPacking {
public:
    Status offsets(const KeyedLists& lists, std::uint32_t queries, std::uint32_t* offsets,
                   std::uint32_t& total, cudaStream_t stream);
    Status pack(const KeyedLists& lists, std::uint32_t queries, const std::uint32_t* ids,
                const std::uint32_t* offsets, std::uint32_t* items, double* distances,
                cudaStream_t stream);

private:
    DeviceBuffer<std::uint8_t> scratch_;
};

}  // namespace gputext::gpu
