// kernels/documents/detail/band_distances.cuh - distances of pairs whose band of diagonals fits a
// warp
//
// A group of lanes computes one pair: lane b % lanes holds rows of block b, which live while the
// band passes over them, and take those of block b + lanes then. So a warp computes several pairs
// of small limits at once, or one of a large limit, and few lanes ever idle.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "kernels/base/cuda_status.hpp"
#include "kernels/documents/detail/band_columns.cuh"
#include "kernels/documents/detail/band_distances.cuh"

namespace gputext::gpu {

inline constexpr std::uint32_t kAbove = UINT32_MAX;

/// A pair without a common begin or end; rows.count <= columns.count.
struct PairTask {
    Symbols rows;
    Symbols columns;
    std::uint32_t limit;

    __device__ bool is_wide() const { return (rows.wide | columns.wide) != 0; }
};

/// How a pair is laid over lanes.
struct BandShape {
    unsigned words;  // of 64 rows a lane
    unsigned lanes;

    /// The largest limit whose diagonals fit.
    __host__ __device__ constexpr std::uint32_t limit() const {
        return (64 * words + 1) * lanes - 64 * words;
    }
    __host__ __device__ constexpr unsigned groups() const { return kWarp / lanes; }
};

inline constexpr unsigned kBandClasses = 12;
/// In ascending order of their limits, and of their costs. The match tables of wide pairs are four
/// times as large, so that these have one word a lane and fewer shapes.
__host__ __device__ constexpr BandShape band_shape(unsigned which, bool wide) {
    constexpr BandShape narrow_shapes[kBandClasses] = {{1, 2},  {2, 2},  {1, 4},  {2, 3},
                                                       {2, 4},  {2, 5},  {2, 6},  {2, 8},
                                                       {2, 10}, {2, 16}, {2, 32}, {4, 32}};
    constexpr BandShape wide_shapes[kBandClasses] = {{1, 2}, {1, 3},  {1, 4},  {1, 5}, {1, 6},
                                                     {1, 8}, {1, 10}, {1, 16}, {1, 32}};
    return wide ? wide_shapes[which] : narrow_shapes[which];
}
__host__ __device__ constexpr unsigned band_classes(bool wide) {
    return wide ? 9 : kBandClasses;
}

/// The class of pairs that no shape holds.
inline constexpr unsigned kStripClass = kBandClasses;
inline constexpr unsigned kClasses = kBandClasses + 1;
/// More columns would keep a launch from ending soon.
inline constexpr std::uint32_t kMostBandColumns = 1u << 17;

/// Lists of tasks to do, one a class, each with room for every task of the batch.
struct TaskLists {
    std::uint32_t* tasks;   // [class][room]
    std::uint32_t* counts;  // [class]
    std::uint32_t* taken;   // [class]
    std::uint32_t room;
    std::uint32_t usable;  // bit by bit, the classes in use

    __device__ void add(unsigned which, std::uint32_t task) const {
        tasks[std::size_t{which} * room + atomicAdd(counts + which, 1)] = task;
    }
};

/// The first class, from `from` on, whose shape holds the limit.
__device__ inline unsigned class_for(std::uint32_t limit, const PairTask& pair, unsigned from,
                                     std::uint32_t usable) {
    if (pair.columns.count > kMostBandColumns) return kStripClass;
    const bool wide = pair.is_wide();
    for (unsigned which = from; which < band_classes(wide); ++which)
        if ((usable >> which & 1) != 0 && band_shape(which, wide).limit() >= limit) return which;
    return kStripClass;
}

/// Works on the list of one class until it is empty or about `nanoseconds` have passed; pairs
/// whose distance is above the shape's limit, and not yet above their own, go to a later list.
Status launch_band_distances(unsigned which, bool wide, const PairTask* tasks, TaskLists lists,
                             std::uint32_t* distances, std::uint64_t nanoseconds,
                             cudaStream_t stream);

// Distances of pairs of any length and limit, in tiles (strip_distances.cu). The matrix is cut into
// strips of kTile rows and tiles of kTile columns. Tiles on an antidiagonal need only those of the
// antidiagonals before, so each is one launch, and what it leaves (a column of each strip, a row of
// steps under each tile) waits in memory for the next one.

inline constexpr std::uint32_t kTile = 64 * kWarp;

/// Bytes of device memory for one pair of that many rows.
std::size_t strip_bytes(std::size_t rows);

/// A pair as the host knows it.
struct StripPair {
    std::uint32_t task;
    PairTask pair;
};

/// Writes the distances of the pairs, or kAbove. Waits for the stream. At least one pair is worked
/// on at a time, whatever `memory_limit` says. Errors: cancelled, out_of_memory, device_error.
Status strip_distances(std::span<const StripPair> pairs, bool wide, std::uint32_t* distances,
                       std::size_t memory_limit, const Execution& execution, cudaStream_t stream);

}  // namespace gputext::gpu
