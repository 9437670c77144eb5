#include "cpp/base/simd.hpp"

#if defined(GPUTEXT_X86) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace gputext {
namespace {

/// Whether the processor has AMX's tiles and their products of bfloat16, and the system lets this
/// process use them: their registers are larger than what it saves of a thread otherwise.
bool amx_granted() {
#if defined(GPUTEXT_X86) && defined(__linux__) && defined(SYS_arch_prctl)
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
    constexpr unsigned bfloat16 = 1u << 22, tiles = 1u << 24;
    constexpr long request = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, its XSAVE component
    return (d & bfloat16) != 0 && (d & tiles) != 0 &&
           syscall(SYS_arch_prctl, request, tile_data) == 0;
#else
    return false;
#endif
}

}  // namespace

bool simd_available(Simd simd) {
    switch (simd) {
        case Simd::portable:
            return true;
#ifdef GPUTEXT_X86
        case Simd::avx2:
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                   __builtin_cpu_supports("popcnt");
        case Simd::avx512:
            return simd_available(Simd::avx2) && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vpopcntdq");
        case Simd::bfloat16:
            return simd_available(Simd::avx512) && __builtin_cpu_supports("avx512bf16");
        case Simd::amx: {
            static const bool granted = simd_available(Simd::avx512) && amx_granted();
            return granted;
        }
#endif
        default:
            return false;
    }
}

Simd best_simd() {
    static const Simd best = simd_available(Simd::avx512) ? Simd::avx512
                             : simd_available(Simd::avx2) ? Simd::avx2
                                                          : Simd::portable;
    return best;
}

Simd best_simd_with_bfloat16() {
    static const Simd best = simd_available(Simd::amx)        ? Simd::amx
                             : simd_available(Simd::bfloat16) ? Simd::bfloat16
                                                              : best_simd();
    return best;
}

const char* simd_name(Simd simd) {
    switch (simd) {
        case Simd::amx:
            return "amx";
        case Simd::bfloat16:
            return "avx512_bf16";
        case Simd::avx512:
            return "avx512";
        case Simd::avx2:
            return "avx2";
        default:
            return "portable";
    }
}

}  // namespace gputext
