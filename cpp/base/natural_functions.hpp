// cpp/base/natural_functions.hpp - exponential function and logarithm with the same bits everywhere

#pragma once

#include <cstdint>

#include "cpp/base/rounded.hpp"

namespace gputext {

// ---- Exponential function with the same bits everywhere ----
//
// C libraries and devices differ in the last bits of exp(). This one is defined by its operations
// of IEEE 754's binary32, rounded to nearest, ties to even: k = y * log2(e) rounded to an integer,
// r = fma(k, -low, fma(k, -high, y)) where high + low is ln 2, and 2^k times
// 1 + r + r^2/2 + ... + r^7/5040, by Horner's rule with fma. Off by 2^-23 of the result at most.

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

// ---- Natural logarithm with the same bits everywhere ----
//
// C libraries and devices differ in the last bit of log(). This one is defined by its operations of
// IEEE 754's binary64, rounded to nearest and never fused: x = m * 2^e with m in [sqrt(1/2),
// sqrt(2)), s = (m - 1) / (m + 1), z = s * s, and e * ln 2 + 2 s (1 + z/3 + z^2/5 + ... + z^10/21),
// the polynomial by Horner's rule. Off by 2^-51 of the result or 2^-52 at most.

/// Natural logarithm of a normal number above 0.
GPUTEXT_HOST_DEVICE inline double natural_log(double x) {
    constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
    // The bits of sqrt(2)'s fraction: mantissas above it belong to the next power of two.
    constexpr std::uint64_t kRootOfTwo = 0x6a09e667f3bcd;
    const auto bits = __builtin_bit_cast(std::uint64_t, x);
    const bool upper = (bits & kFraction) >= kRootOfTwo;
    const auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023 + (upper ? 1 : 0);
    const std::uint64_t mantissa = (bits & kFraction) | (upper ? 1022ull : 1023ull) << 52;
    const auto m = __builtin_bit_cast(double, mantissa);
    const double s = rounded::quotient(rounded::sum(m, -1.0), rounded::sum(m, 1.0));
    const double z = rounded::product(s, s);
    double sum = 1.0 / 21;
    for (int i = 19; i >= 1; i -= 2) sum = rounded::sum(rounded::product(sum, z), 1.0 / i);
    return rounded::sum(rounded::product(static_cast<double>(exponent), 0x1.62e42fefa39efp-1),
                        rounded::product(rounded::product(2.0, s), sum));
}

}  // namespace gputext
