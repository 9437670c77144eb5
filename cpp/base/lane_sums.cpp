#include "cpp/base/lane_sums.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace gputext {
namespace {

constexpr std::size_t kLanesOfSum = 32;

enum class Term { product, square };

template <Term term>
float sum_portable(const float* a, const float* b, std::size_t dimensions) {
    float lanes[kLanesOfSum] = {};
    for (std::size_t begin = 0; begin < dimensions; begin += kLanesOfSum) {
        const std::size_t count = std::min(kLanesOfSum, dimensions - begin);
        for (std::size_t l = 0; l < count; ++l) {
            const float x = a[begin + l], y = b[begin + l];
            if constexpr (term == Term::product) {
                lanes[l] = std::fma(x, y, lanes[l]);
            } else {
                const float difference = x - y;
                lanes[l] = std::fma(difference, difference, lanes[l]);
            }
        }
    }
    for (std::size_t half = kLanesOfSum / 2; half > 0; half /= 2)
        for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    return lanes[0];
}

#ifdef GPUTEXT_X86

// Lanes beyond the last element are neither read nor changed.

/// Adds lanes that differ by 4, then 2, then 1.
GPUTEXT_TARGET_AVX2 inline float sum_of_eight(__m256 lanes) {
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    four = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(four, _mm_shuffle_ps(four, four, 1)));
}

template <Term term>
GPUTEXT_TARGET_AVX2 inline __m256 add_eight(__m256 a, __m256 b, __m256 lanes) {
    if constexpr (term == Term::product) return _mm256_fmadd_ps(a, b, lanes);
    const __m256 difference = _mm256_sub_ps(a, b);
    return _mm256_fmadd_ps(difference, difference, lanes);
}

template <Term term>
GPUTEXT_TARGET_AVX2 float sum_avx2(const float* a, const float* b, std::size_t dimensions) {
    alignas(32) static constexpr int kMasks[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
    __m256 lanes[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                       _mm256_setzero_ps()};
    std::size_t i = 0;
    for (; i + kLanesOfSum <= dimensions; i += kLanesOfSum)
        for (std::size_t v = 0; v < 4; ++v)
            lanes[v] = add_eight<term>(_mm256_loadu_ps(a + i + 8 * v),
                                       _mm256_loadu_ps(b + i + 8 * v), lanes[v]);
    for (std::size_t v = 0; v < 4 && i + 8 * v < dimensions; ++v) {
        const std::size_t begin = i + 8 * v;
        const std::size_t count = std::min<std::size_t>(8, dimensions - begin);
        const __m256i mask =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMasks + 8 - count));
        const __m256 added = add_eight<term>(_mm256_maskload_ps(a + begin, mask),
                                             _mm256_maskload_ps(b + begin, mask), lanes[v]);
        lanes[v] = _mm256_blendv_ps(lanes[v], added, _mm256_castsi256_ps(mask));
    }
    return sum_of_eight(
        _mm256_add_ps(_mm256_add_ps(lanes[0], lanes[2]), _mm256_add_ps(lanes[1], lanes[3])));
}

template <Term term>
GPUTEXT_TARGET_AVX512 inline __m512 add_sixteen(__m512 a, __m512 b, __m512 lanes,
                                                __mmask16 chosen) {
    if constexpr (term == Term::product) return _mm512_mask3_fmadd_ps(a, b, lanes, chosen);
    const __m512 difference = _mm512_sub_ps(a, b);
    return _mm512_mask3_fmadd_ps(difference, difference, lanes, chosen);
}

template <Term term>
GPUTEXT_TARGET_AVX512 float sum_avx512(const float* a, const float* b, std::size_t dimensions) {
    constexpr __mmask16 kAll = 0xffff;
    __m512 low = _mm512_setzero_ps(), high = low;
    std::size_t i = 0;
    for (; i + kLanesOfSum <= dimensions; i += kLanesOfSum) {
        low = add_sixteen<term>(_mm512_loadu_ps(a + i), _mm512_loadu_ps(b + i), low, kAll);
        high =
            add_sixteen<term>(_mm512_loadu_ps(a + i + 16), _mm512_loadu_ps(b + i + 16), high, kAll);
    }
    if (i < dimensions) {
        const std::uint32_t rest = (std::uint32_t{1} << (dimensions - i)) - 1;
        const auto first = static_cast<__mmask16>(rest);
        low = add_sixteen<term>(_mm512_maskz_loadu_ps(first, a + i),
                                _mm512_maskz_loadu_ps(first, b + i), low, first);
        if (const auto second = static_cast<__mmask16>(rest >> 16); second != 0)
            high = add_sixteen<term>(_mm512_maskz_loadu_ps(second, a + i + 16),
                                     _mm512_maskz_loadu_ps(second, b + i + 16), high, second);
    }
    const __m512 sixteen = _mm512_add_ps(low, high);
    return sum_of_eight(
        _mm256_add_ps(__builtin_shufflevector(sixteen, sixteen, 0, 1, 2, 3, 4, 5, 6, 7),
                      __builtin_shufflevector(sixteen, sixteen, 8, 9, 10, 11, 12, 13, 14, 15)));
}

#endif

template <Term term>
LaneSum lane_sum_by(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return sum_avx512<term>;
    if (simd == Simd::avx2) return sum_avx2<term>;
#endif
    (void)simd;
    return sum_portable<term>;
}

}  // namespace

LaneSum lane_dot_by(Simd simd) {
    return lane_sum_by<Term::product>(simd);
}

LaneSum lane_squared_distance_by(Simd simd) {
    return lane_sum_by<Term::square>(simd);
}

}  // namespace gputext
