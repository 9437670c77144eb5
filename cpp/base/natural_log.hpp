// cpp/base/natural_log.hpp - natural logarithm with the same bits everywhere
//
// C libraries and devices differ in the last bit of log(). This one is defined by its operations of
// IEEE 754's binary64, rounded to nearest and never fused: x = m * 2^e with m in [sqrt(1/2),
// sqrt(2)), s = (m - 1) / (m + 1), z = s * s, and e * ln 2 + 2 s (1 + z/3 + z^2/5 + ... + z^10/21),
// the polynomial by Horner's rule. Off by 2^-51 of the result or 2^-52 at most.

#pragma once

#include <cstdint>

#include "cpp/base/rounded.hpp"

namespace gputext {

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
