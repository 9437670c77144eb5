// kernels/hnsw/detail/choice.hpp - Choose() of cpp/hnsw/links.hpp for many rows

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cpp/base/status.hpp"
#include "cpp/knn/distance.hpp"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {

/// Lists in the order of (distance, number), one for each row that others are chosen for: in lists
/// of neighbors, or one behind the other.
struct ListsToChoose {
    const std::uint32_t* items;
    const std::uint64_t* keys;  // ordered_bits of distances
    std::uint32_t stride_of_items, stride_of_keys;
    const std::uint64_t* begins;  // of each list, and the end; null: every `capacity`
    std::uint32_t capacity;
    const std::uint32_t* kept;  // of each list, without begins
    std::uint32_t first_row;    // that others are chosen for by list 0

    static ListsToChoose of(const ListsView& lists, std::uint32_t first_row) {
        return {lists.items, lists.keys, 1, 1, nullptr, lists.capacity, lists.kept, first_row};
    }
};

struct Choice {
    Metric metric;  // not cosine
    DeviceRows rows;
    std::uint32_t limit;
    double slack;
    // `limit` of each list: the rows that are chosen, kNoElement behind them; and their distances,
    // or null
    std::uint32_t* chosen;
    double* distances;
};

/// The lists [begin, end): one launch. Shared memory of a block: 37 KB, or 8 bytes a dimension and
/// 12 for each of the limit.
Status choose(const ListsToChoose& lists, const Choice& choice, std::uint32_t begin,
              std::uint32_t end, cudaStream_t stream);

}  // namespace gputext::gpu
