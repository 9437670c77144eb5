// cpp/hnsw/detail/difference_bound.hpp - what rounded differences tell of the distance of two rows
//
// Of a row e, and of two others c and s whose distances from it are known, the differences
// x = c - e and y = s - e are rounded to x~ and y~. Then
//
//   T = |x~|^2 + |y~|^2 - 2 x~ y~   is |x~ - y~|^2 but for G M^2, where M bounds |x~| + |y~|
//   |x~ - y~|                       is |c - s| but for u N + t, where N = |x| + |y|
//
// Each of the three terms of T is a sum of d exact products, with an error of G of their magnitudes.
// So the margin is about 2 u of the distances themselves, however large the numbers are.

#pragma once

#include <cmath>
#include <cstddef>

#include "cpp/base/host_device.hpp"

namespace gputext {

/// Where a distance is: surely at most a limit, surely above it, or neither.
enum class SideOfLimit { below, unknown, above };

/// All numbers may be scaled by one power of two.
struct DifferenceBound {
    double rounding;   // u, with room for what is rounded in floats and doubles
    double underflow;  // t
    double sum_error;  // G

    /// Of the exact distance |c - s|, by T and N.
    GPUTEXT_HOST_DEVICE SideOfLimit side_of(double limit, double both, double square) const {
        const double margin = rounding * both + underflow, most = both + margin;
        const double error = sum_error * most * most;
        const double high = limit + margin, low = limit - margin;
        if (!(square <= 0x1p1000)) return SideOfLimit::unknown;  // an overflow
        if (square > high * high + error) return SideOfLimit::above;
        return low > 0 && square < low * low - error ? SideOfLimit::below : SideOfLimit::unknown;
    }
};

// ---- Halves, multiplied by tensor cores ----

/// The power of two that brings differences of rows up to so far apart into the range of halves,
/// where they are rounded in floats; 0 where these would over- or underflow.
GPUTEXT_HOST_DEVICE inline float scale_to_halves(double farthest) {
    if (!(farthest >= 0x1p-100 && farthest <= 0x1p100)) return 0;
    int exponent = 0;
    std::frexp(farthest, &exponent);
    return static_cast<float>(std::ldexp(1.0, 14 - exponent));
}

/// Of rows of up to 4,096 dimensions, scaled so. Elements below 2^-14 have an error of 2^-25, of
/// which t is twice the norm. kernels/knn/detail/fp16_rows.hpp says where G is from.
GPUTEXT_HOST_DEVICE inline DifferenceBound bound_of_halves(std::size_t dimensions) {
    return {0x1p-11 * (1 + 0x1p-7), 0x1p-18, (static_cast<double>(dimensions) + 32) * 0x1p-22};
}

}  // namespace gputext
