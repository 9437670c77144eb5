// cpp/base/lane_sums.hpp - sums of products over two vectors of float, defined to the bit
//
// A dot product or a squared distance has these bits wherever it is computed, on whatever device.
// Every operation is of IEEE 754's binary32, rounds to nearest, ties to even, and keeps numbers
// below the normal ones. There are 32 lanes, as a warp has. Lane l begins as +0 and takes elements
// l, l + 32, l + 64 ... in this order, each by one fused multiply-add:
//
//   lane_dot               lane = fma(a[i], b[i], lane)
//   lane_squared_distance  lane = fma(d, d, lane), d = a[i] - b[i]
//
// Then each lane is added to the one whose number differs by 16, of the 16 sums each to that by 8,
// then 4, 2 and 1. Both are symmetric in a and b; a sum beyond the largest float is infinite.

#pragma once

#include <cstddef>

#include "cpp/base/simd.hpp"

namespace gputext {

/// A sum over two vectors, by one instruction set. O(dimensions).
using LaneSum = float (*)(const float* a, const float* b, std::size_t dimensions);
/// lane_dot, the sum of a[i] * b[i].
LaneSum lane_dot_by(Simd simd);
/// lane_squared_distance, the sum of (a[i] - b[i])^2.
LaneSum lane_squared_distance_by(Simd simd);

}  // namespace gputext
