// kernels/embeddings/detail/logistic.cuh - logistic function of cpp/embeddings/detail/logistic.hpp
// on a device, to the bit
//
// Operations are the intrinsics that round once, and are fused where that header says so.

#pragma once

namespace gputext::gpu {

/// e^-|x|, of a finite x; of |x| above 80, that of 80.
__device__ inline float exponential_below(float x) {
    const float a = -fminf(fabsf(x), 80.0f);
    const float n = rintf(__fmul_rn(a, 0x1.715476p+0f));
    const float r = __fmaf_rn(n, -0x1.7f7d1cp-20f, __fmaf_rn(n, -0x1.62e400p-1f, a));
    float sum = 1.0f / 720;
    sum = __fmaf_rn(sum, r, 1.0f / 120);
    sum = __fmaf_rn(sum, r, 1.0f / 24);
    sum = __fmaf_rn(sum, r, 1.0f / 6);
    sum = __fmaf_rn(sum, r, 0.5f);
    sum = __fmaf_rn(sum, r, 1.0f);
    sum = __fmaf_rn(sum, r, 1.0f);
    return __fmul_rn(sum, __int_as_float((static_cast<int>(n) + 127) << 23));
}

/// 1 / (1 + e^-x), where `power` is exponential_below(x).
__device__ inline float logistic(float x, float power) {
    const float upper = __frcp_rn(__fadd_rn(1.0f, power));
    return __float_as_int(x) < 0 ? __fmul_rn(power, upper) : upper;
}

}  // namespace gputext::gpu
