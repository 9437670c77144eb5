// kernels/knn/detail/fp16_filter.hpp - distance filter in half precision: products of rows,
// compared as they arise
//
// A score v + r of a query and an item (kernels/knn/detail/fp16_rows.hpp) lives in a register: it
// is compared with the query's gate, and only the few that reach it are written, or a bit for each.
// Up to 64 dimensions a warp keeps 64 queries in registers and lets all items pass by (above 32
// dimensions, with compute capability 9.0, a warp group does so, unless lists are filled); above,
// blocks multiply tiles of 128 queries by 256 items from shared memory. Compute capability 8.0 or
// higher; 7.5 up to 64 dimensions.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cpp/base/status.hpp"
#include "kernels/knn/detail/fp16_rows.hpp"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {

/// Some queries, each beside all of some items.
struct Fp16FilterPart {
    std::uint32_t first_block;                 // of the launch
    std::uint32_t begin_queries, end_queries;  // in Fp16FilterParts::queries
    std::uint32_t begin, end;                  // of the items, as they lie

    static constexpr std::uint32_t block_queries = 128, block_items = 2048;
    std::uint32_t blocks() const {
        return (end_queries - begin_queries + block_queries - 1) / block_queries *
               ((end - begin + block_items - 1) / block_items);
    }
};

/// All on the device.
struct Fp16FilterParts {
    const Fp16FilterPart* parts = nullptr;
    std::uint32_t count = 0;
    std::uint32_t blocks = 0;
    const std::uint32_t* queries = nullptr;  // their numbers, part by part
    const std::uint32_t* items = nullptr;    // the number of each item, as it lies
};

struct Fp16FilterJob {
    Fp16Queries queries;
    std::uint32_t rows;  // of queries
    const float* gates;  // by query
    Fp16Items items;     // the first of them has the number first_item
    std::uint32_t first_item;
    std::uint32_t begin;  // numbers of the items that are filtered
    std::uint32_t end;
    ListsView lists;
    /// Null unless, in place of lists, the largest scores of groups of items are wanted: of
    /// `groups` groups of group_items items each, query by query. group_items is a multiple of 16.
    /// Groups behind the last item are left as they are.
    float* largest;
    std::uint32_t groups;
    std::uint32_t group_items;
    /// Null unless, in place of lists, items are marked: MarkedItems::words_of(end - begin) words a
    /// query, as MarkedItems has them. Only up to 64 dimensions.
    std::uint32_t* marks;
    /// Unless there are none, these are filtered, into lists: `begin`, `end` and `first_item` mean
    /// nothing, and all groups of queries have the same bounds. Only above 64 dimensions.
    Fp16FilterParts parts = {};
};

inline constexpr std::uint32_t kSampleGroups = 256;
inline constexpr std::uint32_t kMostGroups = 512;

/// What the current device can do.
struct Fp16FilterDevice {
    int capability = 0;  // 90 is 9.0
    int processors = 0;
    int shared_bytes = 0;  // of a block, at most

    Status look();
    bool can_filter(std::uint32_t padded) const {
        return capability >= 80 || (capability >= 75 && padded <= 64);
    }
};

/// Adds items to the lists of the queries whose gates they reach, with their scores. One launch:
/// 2 * rows * (end - begin) * padded operations.
Status run_fp16_filter(const Fp16FilterDevice& device, const Fp16FilterJob& job,
                       std::uint32_t padded, cudaStream_t stream);

/// What becomes of a query's limit before the filter, and after.
struct GateJob {
    Fp16Space space;
    Fp16Queries queries;
    std::uint32_t rows;
    const double* limits;
    const float* largest;  // Fp16Items::largest
    float* gates;
    float* widths;  // bounds of what a score may exceed t by, or null
};

/// Gates that leave out nothing, from which scores can be told.
Status open_gates(const GateJob& job, cudaStream_t stream);

/// Lists without limits have items with scores, and no distances; lists with limits have distances
/// of what is kept. Of the former, leaves what may be among the k nearest, makes that what they
/// keep, and raises their gates. Writes to `crowded` which lists have to be merged: those with
/// limits for which something was found, and those of which more than `most` items are left, which
/// then keep nothing. Its first number is how many they are, 0 before. Leaves lists that overflowed
/// unchanged.
Status settle(const GateJob& job, const ListsView& lists, const QuerySelection& selection,
              std::uint32_t most, std::uint32_t* crowded, cudaStream_t stream);
/// Gates of lists that have been merged, as set_gates().
Status raise_gates(const GateJob& job, const QuerySelection& selection, cudaStream_t stream);
/// Lists without limits keep nothing: what they kept is found.
Status unsettle(const ListsView& lists, std::uint32_t queries, cudaStream_t stream);

/// Gates that leave out only items beyond the limits.
Status set_gates(const GateJob& job, cudaStream_t stream);

/// As above, or higher gates that `rank` groups of samples, or a few more, reach: the items that
/// reach one may be fewer than the k nearest. `largest` as in Fp16FilterJob, of kSampleGroups
/// groups.
Status guess_gates(const GateJob& job, const float* largest, std::uint32_t rank,
                   cudaStream_t stream);

/// As above, from the largest scores of all items, the first `groups` of kMostGroups: gates low
/// enough for the `rank` nearest, except for items whose scores are infinite.
Status find_gates(const GateJob& job, const float* largest, std::uint32_t groups,
                  std::uint32_t rank, cudaStream_t stream);

}  // namespace gputext::gpu
