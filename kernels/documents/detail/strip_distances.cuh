// kernels/documents/detail/strip_distances.cuh - distances of pairs of any length and limit, in
// tiles
//
// The matrix is cut into strips of kTile rows and tiles of kTile columns. Tiles on an antidiagonal
// need only those of the antidiagonals before, so each is one launch, and what it leaves (a
// column of each strip, a row of steps under each tile) waits in memory for the next one.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "kernels/documents/detail/band_distances.cuh"

namespace gputext::gpu {

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
