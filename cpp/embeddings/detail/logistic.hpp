// cpp/embeddings/detail/logistic.hpp - logistic function 1 / (1 + e^-x), with the same bits
// everywhere
//
// Defined by its operations of IEEE 754's binary32, rounded to nearest, fused where fma is written:
// with a = -min(|x|, 80), n = a / ln 2 rounded to an integer and r = a - n ln 2 in two parts, e^a
// is 2^n times Taylor's polynomial of degree 6 by Horner's rule. Off by 2^-22 of the result or
// less.

#pragma once

#include <cmath>
#include <cstdint>

#include "cpp/base/natural_functions.hpp"
#include "cpp/base/rounded.hpp"

namespace gputext {

/// e^-|x| of a finite number; of |x| above 80, that of 80.
GPUTEXT_HOST_DEVICE inline float exponential_below(float x) {
    const float a = -std::fmin(std::fabs(x), 80.0f);
    const float n = std::rint(rounded::product(a, 0x1.715476p+0f));
    const float r = rounded::fused(n, -0x1.7f7d1cp-20f, rounded::fused(n, -0x1.62e400p-1f, a));
    const float sum = exponential_series(r, 1.0f / 720);
    const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
    return rounded::product(sum, __builtin_bit_cast(float, exponent));
}

/// 1 / (1 + exp(-x)), where `power` is exponential_below(x): a processor can compute that for
/// several numbers at a time.
GPUTEXT_HOST_DEVICE inline float logistic(float x, float power) {
    const float upper = rounded::reciprocal(rounded::sum(1.0f, power));
    return std::signbit(x) ? rounded::product(power, upper) : upper;
}

/// 1 / (1 + exp(-x)) for a finite number; some value from 0 to 1 for any other.
GPUTEXT_HOST_DEVICE inline float logistic(float x) {
    return logistic(x, exponential_below(x));
}

}  // namespace gputext
