// kernels/band_distances.cuh - distances of pairs whose band of diagonals fits a warp
//
// A group of lanes computes one pair: lane b % lanes holds rows of block b, which live while the
// band passes over them, and take those of block b + lanes then. So a warp computes several pairs
// of small limits at once, or one of a large limit, and few lanes ever idle.

#pragma once

#include <cstdint>

#include "kernels/band_columns.cuh"
#include "kernels/cuda_status.hpp"

namespace gputext::device {

inline constexpr std::uint32_t kAbove = UINT32_MAX;

/// A pair of which no end is in common, rows.count <= columns.count.
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

inline constexpr unsigned kBandClasses = 11;
__host__ __device__ constexpr BandShape band_shape(unsigned which) {
    constexpr BandShape shapes[kBandClasses] = {{1, 2}, {1, 3},  {1, 4},  {1, 5},  {1, 6}, {1, 8},
                                                {1, 10}, {1, 16}, {1, 32}, {4, 16}, {4, 32}};
    return shapes[which];
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

    __device__ void add(unsigned which, std::uint32_t task) const {
        tasks[std::size_t{which} * room + atomicAdd(counts + which, 1)] = task;
    }
};

/// Of the shapes with one word a lane. The match tables of wide pairs leave no room for more.
inline constexpr unsigned kNarrowLaneClasses = 9;

/// The class from `from` on in which a limit can be tried.
__device__ inline unsigned class_for(std::uint32_t limit, const PairTask& pair, unsigned from) {
    if (pair.columns.count > kMostBandColumns) return kStripClass;
    const unsigned end = pair.is_wide() ? kNarrowLaneClasses : kBandClasses;
    for (unsigned which = from; which < end; ++which)
        if (band_shape(which).limit() >= limit) return which;
    return kStripClass;
}

/// Works on the list of one class until it is empty or about `nanoseconds` have passed; pairs
/// whose distance is above the shape's limit, and not yet above their own, go to a later list.
Status launch_band_distances(unsigned which, bool wide, const PairTask* tasks, TaskLists lists,
                             std::uint32_t* distances, std::uint64_t nanoseconds,
                             cudaStream_t stream);

}  // namespace gputext::device
