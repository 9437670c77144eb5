// cpp/base/simd.hpp - instruction sets of the inner loops, chosen at run time

#pragma once

namespace gputext {

/// avx2 stands for AVX2 and FMA together, avx512 for F, BW, DQ, VL and VPOPCNTDQ.
enum class Simd { portable, avx2, avx512 };

bool simd_available(Simd simd);
/// The widest one that this processor has.
Simd best_simd();
const char* simd_name(Simd simd);

}  // namespace gputext

#if defined(__x86_64__)
#define GPUTEXT_X86 1
#define GPUTEXT_TARGET_AVX2 __attribute__((target("avx2,fma,popcnt")))
#define GPUTEXT_TARGET_AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,fma,popcnt")))
#endif
