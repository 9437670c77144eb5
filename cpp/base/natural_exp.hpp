// cpp/base/natural_exp.hpp - exponential function with the same bits everywhere
//
// C libraries and devices differ in the last bits of exp(). This one is defined by its operations
// of IEEE 754's binary32, rounded to nearest, ties to even: k = y * log2(e) rounded to an integer,
// r = fma(k, -low, fma(k, -high, y)) where high + low is ln 2, and 2^k times
// 1 + r + r^2/2 + ... + r^7/5040, by Horner's rule with fma. Off by 2^-23 of the result at most.

#pragma once

#include <cstdint>

namespace gputext {

/// exp(y) for y <= 0; 0 for y below -87. Compiled for an instruction set with
/// fused operations where it is inlined into such a function.
[[gnu::always_inline]] inline float natural_exp(float y) {
    // A sum with it has no fraction: it is rounded to an integer.
    constexpr float shift = 0x1.8p23f;
    const float z = y < -87 ? -87 : y;
    const float k = (z * 0x1.715476p+0f + shift) - shift;
    const float r = __builtin_fmaf(k, -0x1.7f7d1cp-20f, __builtin_fmaf(k, -0x1.62e4p-1f, z));
    float sum = 1.0f / 5040;
    sum = __builtin_fmaf(sum, r, 1.0f / 720);
    sum = __builtin_fmaf(sum, r, 1.0f / 120);
    sum = __builtin_fmaf(sum, r, 1.0f / 24);
    sum = __builtin_fmaf(sum, r, 1.0f / 6);
    sum = __builtin_fmaf(sum, r, 0.5f);
    sum = __builtin_fmaf(sum, r, 1.0f);
    sum = __builtin_fmaf(sum, r, 1.0f);
    const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(k) + 127);
    const float power = __builtin_bit_cast(float, exponent << 23);
    return y < -87 ? 0 : sum * power;
}

}  // namespace gputext
