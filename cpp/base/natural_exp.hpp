// cpp/base/natural_exp.hpp - exponential function with the same bits everywhere
//
// C libraries and devices differ in the last bits of exp(). This one is defined by its operations
// of IEEE 754's binary32, rounded to nearest, ties to even: k = y * log2(e) rounded to an integer,
// r = fma(k, -low, fma(k, -high, y)) where high + low is ln 2, and 2^k times
// 1 + r + r^2/2 + ... + r^7/5040, by Horner's rule with fma. Off by 2^-23 of the result at most.

#pragma once

#include <cstdint>

#include "cpp/base/rounded.hpp"

namespace gputext {

/// 1 + r + r^2/2 + ... + r^5/120 + last * r^6, by Horner's rule with fma.
[[gnu::always_inline]] GPUTEXT_HOST_DEVICE inline float exponential_series(float r, float last) {
    float sum = rounded::fused(last, r, 1.0f / 120);
    sum = rounded::fused(sum, r, 1.0f / 24);
    sum = rounded::fused(sum, r, 1.0f / 6);
    sum = rounded::fused(sum, r, 0.5f);
    sum = rounded::fused(sum, r, 1.0f);
    return rounded::fused(sum, r, 1.0f);
}

/// exp(y) for y <= 0; 0 for y below -87. Compiled for an instruction set with
/// fused operations where it is inlined into such a function.
[[gnu::always_inline]] GPUTEXT_HOST_DEVICE inline float natural_exp(float y) {
    // A sum with it has no fraction: it is rounded to an integer.
    constexpr float shift = 0x1.8p23f;
    const float z = y < -87 ? -87 : y;
    const float k = rounded::sum(rounded::sum(rounded::product(z, 0x1.715476p+0f), shift), -shift);
    const float r = rounded::fused(k, -0x1.7f7d1cp-20f, rounded::fused(k, -0x1.62e4p-1f, z));
    const float sum = exponential_series(r, rounded::fused(1.0f / 5040, r, 1.0f / 720));
    const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(k) + 127);
    const float power = __builtin_bit_cast(float, exponent << 23);
    return y < -87 ? 0 : rounded::product(sum, power);
}

}  // namespace gputext
