// cpp/natural_log.hpp - a logarithm with the same bits everywhere
//
// C libraries and devices differ in the last bit of log(). This one is defined by its operations of
// IEEE 754's binary64, rounded to nearest and never fused: x = m * 2^e with m in [sqrt(1/2),
// sqrt(2)), s = (m - 1) / (m + 1), z = s * s, and e * ln 2 + 2 s (1 + z/3 + z^2/5 + ... + z^10/21),
// the polynomial by Horner's rule. Off by 2^-51 of the result or 2^-52 at most.

#pragma once

#include <bit>
#include <cstdint>

namespace gputext {

#ifdef __CUDACC__
#define GPUTEXT_HOST_DEVICE __host__ __device__
#else
#define GPUTEXT_HOST_DEVICE
#endif

namespace log_detail {

#ifdef __CUDA_ARCH__
__device__ inline double multiply(double a, double b) {
    return __dmul_rn(a, b);
}
__device__ inline double add(double a, double b) {
    return __dadd_rn(a, b);
}
__device__ inline double divide(double a, double b) {
    return __ddiv_rn(a, b);
}
#else
GPUTEXT_HOST_DEVICE inline double multiply(double a, double b) {
    return a * b;
}
GPUTEXT_HOST_DEVICE inline double add(double a, double b) {
    return a + b;
}
GPUTEXT_HOST_DEVICE inline double divide(double a, double b) {
    return a / b;
}
#endif

}  // namespace log_detail

/// Of a normal number above 0.
GPUTEXT_HOST_DEVICE inline double natural_log(double x) {
    using log_detail::add;
    using log_detail::divide;
    using log_detail::multiply;
    constexpr std::uint64_t kFraction = (std::uint64_t{1} << 52) - 1;
    // The bits of sqrt(2)'s fraction: mantissas above it belong to the next power of two.
    constexpr std::uint64_t kRootOfTwo = 0x6a09e667f3bcd;
#ifdef __CUDA_ARCH__
    const auto bits = static_cast<std::uint64_t>(__double_as_longlong(x));
#else
    const auto bits = std::bit_cast<std::uint64_t>(x);
#endif
    const bool upper = (bits & kFraction) >= kRootOfTwo;
    const auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023 + (upper ? 1 : 0);
    const std::uint64_t mantissa = (bits & kFraction) | (upper ? 1022ull : 1023ull) << 52;
#ifdef __CUDA_ARCH__
    const double m = __longlong_as_double(static_cast<long long>(mantissa));
#else
    const double m = std::bit_cast<double>(mantissa);
#endif
    const double s = divide(add(m, -1), add(m, 1));
    const double z = multiply(s, s);
    double sum = 1.0 / 21;
    for (int i = 19; i >= 1; i -= 2) sum = add(multiply(sum, z), 1.0 / i);
    return add(multiply(static_cast<double>(exponent), 0x1.62e42fefa39efp-1),
               multiply(multiply(2, s), sum));
}

}  // namespace gputext
