// cpp/embeddings/detail/logistic.hpp - logistic function 1 / (1 + e^-x), with the same bits
// everywhere
//
// Defined by its operations of IEEE 754's binary32, rounded to nearest, fused where fma is written:
// with a = -min(|x|, 80), n = a / ln 2 rounded to an integer and r = a - n ln 2 in two parts, e^a
// is 2^n times Taylor's polynomial of degree 6 by Horner's rule. Off by 2^-22 of the result or
// less.

#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace gputext {

/// 1 / (1 + exp(-x)) for a finite number; some value from 0 to 1 for any other.
inline float logistic(float x) {
    const float a = -std::fmin(std::fabs(x), 80.0f);
    const float n = std::rint(a * 0x1.715476p+0f);
    const float r = std::fma(n, -0x1.7f7d1cp-20f, std::fma(n, -0x1.62e400p-1f, a));
    float sum = 1.0f / 720;
    sum = std::fma(sum, r, 1.0f / 120);
    sum = std::fma(sum, r, 1.0f / 24);
    sum = std::fma(sum, r, 1.0f / 6);
    sum = std::fma(sum, r, 0.5f);
    sum = std::fma(sum, r, 1.0f);
    sum = std::fma(sum, r, 1.0f);
    const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
    const float power = sum * std::bit_cast<float>(exponent);
    const float upper = 1.0f / (1.0f + power);
    return std::signbit(x) ? power * upper : upper;
}

}  // namespace gputext
