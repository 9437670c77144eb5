// kernels/base/natural_exp.cuh - exponential function of cpp/base/natural_exp.hpp on a device, to
// the bit
//
// Operations are the intrinsics that round once and are fused where that header says so.

#pragma once

#include <cstdint>

namespace gputext::gpu {

/// exp(y) for y <= 0; 0 for y below -87.
__device__ inline float natural_exp(float y) {
    constexpr float shift = 0x1.8p23f;
    const float z = y < -87 ? -87 : y;
    const float k = __fsub_rn(__fadd_rn(__fmul_rn(z, 0x1.715476p+0f), shift), shift);
    const float r = __fmaf_rn(k, -0x1.7f7d1cp-20f, __fmaf_rn(k, -0x1.62e4p-1f, z));
    float sum = 1.0f / 5040;
    sum = __fmaf_rn(sum, r, 1.0f / 720);
    sum = __fmaf_rn(sum, r, 1.0f / 120);
    sum = __fmaf_rn(sum, r, 1.0f / 24);
    sum = __fmaf_rn(sum, r, 1.0f / 6);
    sum = __fmaf_rn(sum, r, 0.5f);
    sum = __fmaf_rn(sum, r, 1.0f);
    sum = __fmaf_rn(sum, r, 1.0f);
    const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(k) + 127);
    return y < -87 ? 0 : __fmul_rn(sum, __uint_as_float(exponent << 23));
}

}  // namespace gputext::gpu
