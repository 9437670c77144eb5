#include "cpp/base/simd.hpp"

namespace gputext {

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

const char* simd_name(Simd simd) {
    switch (simd) {
        case Simd::avx512:
            return "avx512";
        case Simd::avx2:
            return "avx2";
        default:
            return "portable";
    }
}

}  // namespace gputext
