// cpp/base/simd.hpp - instruction sets of the inner loops, chosen at run time

#pragma once

namespace gputext {

/// Each includes the ones before. avx2 stands for AVX2 and FMA together, avx512 for F, BW, DQ, VL
/// and VPOPCNTDQ, bfloat16 for avx512 and AVX-512's products of bfloat16, amx for avx512 and AMX's
/// products of tiles of bfloat16.
enum class Simd { portable, avx2, avx512, bfloat16, amx };

/// Asks the system for the use of AMX, which it grants to the whole process.
bool simd_available(Simd simd);
/// The widest vectors that this processor has: at most avx512.
Simd best_simd();
/// The best instruction set for functions that can multiply bfloat16: amx or bfloat16 where one is
/// available.
Simd best_simd_with_bfloat16();
const char* simd_name(Simd simd);

}  // namespace gputext

#if defined(__x86_64__)
#define GPUTEXT_X86 1
#define GPUTEXT_TARGET_AVX2 __attribute__((target("avx2,fma,popcnt")))
#define GPUTEXT_TARGET_AVX512 \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,fma,popcnt")))
#define GPUTEXT_TARGET_BFLOAT16 \
    __attribute__((             \
        target("avx512bf16,avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,fma,popcnt")))
#define GPUTEXT_TARGET_AMX \
    __attribute__((target( \
        "amx-tile,amx-bf16,avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,fma,popcnt")))
#endif
