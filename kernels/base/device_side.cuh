// kernels/base/device_side.cuh - what cpp/base/host_device.hpp and rounded.hpp define, for both
// sides
//
// The build names it to nvcc as GPUTEXT_DEVICE_SIDE. Nothing includes it by itself.

#pragma once

#include <cstdint>

#define GPUTEXT_HOST_DEVICE __host__ __device__

#ifdef __CUDA_ARCH__
#define GPUTEXT_EITHER(on_device, on_host) return on_device
#else
#define GPUTEXT_EITHER(on_device, on_host) return on_host
#endif

namespace gputext {

/// On a device one instruction.
__host__ __device__ constexpr std::uint32_t upper_product(std::uint32_t a, std::uint32_t b) {
    GPUTEXT_EITHER(__umulhi(a, b), static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32));
}

namespace rounded {

[[gnu::always_inline]] __host__ __device__ inline float sum(float a, float b) {
    GPUTEXT_EITHER(__fadd_rn(a, b), a + b);
}
[[gnu::always_inline]] __host__ __device__ inline double sum(double a, double b) {
    GPUTEXT_EITHER(__dadd_rn(a, b), a + b);
}
[[gnu::always_inline]] __host__ __device__ inline float product(float a, float b) {
    GPUTEXT_EITHER(__fmul_rn(a, b), a * b);
}
[[gnu::always_inline]] __host__ __device__ inline double product(double a, double b) {
    GPUTEXT_EITHER(__dmul_rn(a, b), a * b);
}
[[gnu::always_inline]] __host__ __device__ inline double quotient(double a, double b) {
    GPUTEXT_EITHER(__ddiv_rn(a, b), a / b);
}
[[gnu::always_inline]] __host__ __device__ inline float reciprocal(float a) {
    GPUTEXT_EITHER(__frcp_rn(a), 1.0f / a);
}
/// a * b + c
[[gnu::always_inline]] __host__ __device__ inline float fused(float a, float b, float c) {
    GPUTEXT_EITHER(__fmaf_rn(a, b, c), __builtin_fmaf(a, b, c));
}

}  // namespace rounded
}  // namespace gputext

#undef GPUTEXT_EITHER
