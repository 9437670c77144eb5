// kernels/base/natural_log.cuh - logarithm of cpp/base/natural_log.hpp on a device, to the bit
//
// Operations are the intrinsics that round once and are never fused.

#pragma once

#include <cstdint>

namespace gputext::gpu {

/// Natural logarithm of a normal number above 0.
__device__ inline double natural_log(double x) {
    constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
    constexpr std::uint64_t kRootOfTwo = 0x6a09e667f3bcd;
    const auto bits = static_cast<std::uint64_t>(__double_as_longlong(x));
    const bool upper = (bits & kFraction) >= kRootOfTwo;
    const auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023 + (upper ? 1 : 0);
    const std::uint64_t mantissa = (bits & kFraction) | (upper ? 1022ull : 1023ull) << 52;
    const double m = __longlong_as_double(static_cast<long long>(mantissa));
    const double s = __ddiv_rn(__dadd_rn(m, -1), __dadd_rn(m, 1));
    const double z = __dmul_rn(s, s);
    double sum = 1.0 / 21;
    for (int i = 19; i >= 1; i -= 2) sum = __dadd_rn(__dmul_rn(sum, z), 1.0 / i);
    return __dadd_rn(__dmul_rn(static_cast<double>(exponent), 0x1.62e42fefa39efp-1),
                     __dmul_rn(__dmul_rn(2, s), sum));
}

}  // namespace gputext::gpu
