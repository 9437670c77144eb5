#include "cpp/documents/detail/shared_counts.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

std::uint32_t letters_portable(const std::uint8_t* query, const std::uint8_t* sketch) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < SharedCounts::letters_size; ++i)
        sum += std::min(query[i], sketch[i]);
    return sum;
}

std::uint32_t grams_portable(const std::uint8_t* low, const std::uint8_t* high,
                             const std::uint8_t* sketch, std::size_t size) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < size; ++i) {
        sum += std::min(low[i], kGramLevels[sketch[i] & 15]);
        sum += std::min(high[i], kGramLevels[sketch[i] >> 4]);
    }
    return sum;
}

#ifdef GPUTEXT_X86

/// The sums that sad_epu8() leaves.
GPUTEXT_TARGET_AVX2 inline std::uint32_t sum_of(__m256i sums) {
    const __m128i half =
        _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    return static_cast<std::uint32_t>(
        _mm_cvtsi128_si64(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half))));
}

GPUTEXT_TARGET_AVX2 inline __m256i load(const std::uint8_t* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

GPUTEXT_TARGET_AVX2 std::uint32_t letters_avx2(const std::uint8_t* query,
                                               const std::uint8_t* sketch) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i first = _mm256_min_epu8(load(query), load(sketch));
    const __m256i second = _mm256_min_epu8(load(query + 32), load(sketch + 32));
    return sum_of(_mm256_add_epi64(_mm256_sad_epu8(first, zero), _mm256_sad_epu8(second, zero)));
}

GPUTEXT_TARGET_AVX2 std::uint32_t grams_avx2(const std::uint8_t* low, const std::uint8_t* high,
                                             const std::uint8_t* sketch, std::size_t size) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i half = _mm256_set1_epi8(15);
    const __m256i levels = _mm256_broadcastsi128_si256(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(kGramLevels.data())));
    __m256i sums = zero;
    for (std::size_t i = 0; i < size; i += 32) {
        __m256i codes;
        if (i + 32 <= size) {
            codes = load(sketch + i);
        } else {
            const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            const __m256i inside =
                _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>((size - i) / 4)), lanes);
            codes = _mm256_maskload_epi32(reinterpret_cast<const int*>(sketch + i), inside);
        }
        const __m256i lower = _mm256_shuffle_epi8(levels, _mm256_and_si256(codes, half));
        const __m256i upper =
            _mm256_shuffle_epi8(levels, _mm256_and_si256(_mm256_srli_epi16(codes, 4), half));
        sums = _mm256_add_epi64(sums, _mm256_sad_epu8(_mm256_min_epu8(lower, load(low + i)), zero));
        sums =
            _mm256_add_epi64(sums, _mm256_sad_epu8(_mm256_min_epu8(upper, load(high + i)), zero));
    }
    return sum_of(sums);
}

// The forms with a mask of ones are the same instructions; GCC 12 warns of the others.

GPUTEXT_TARGET_AVX512 inline std::uint32_t sum_of_wide(__m512i sums) {
    return sum_of(_mm256_add_epi64(_mm512_maskz_extracti64x4_epi64(0xff, sums, 0),
                                   _mm512_maskz_extracti64x4_epi64(0xff, sums, 1)));
}

GPUTEXT_TARGET_AVX512 std::uint32_t letters_avx512(const std::uint8_t* query,
                                                   const std::uint8_t* sketch) {
    const __m512i shared = _mm512_min_epu8(_mm512_loadu_si512(query), _mm512_loadu_si512(sketch));
    return sum_of_wide(_mm512_sad_epu8(shared, _mm512_setzero_si512()));
}

GPUTEXT_TARGET_AVX512 std::uint32_t grams_avx512(const std::uint8_t* low, const std::uint8_t* high,
                                                 const std::uint8_t* sketch, std::size_t size) {
    const __m512i zero = _mm512_setzero_si512();
    const __m512i half = _mm512_set1_epi8(15);
    const __m512i levels = _mm512_maskz_broadcast_i32x4(
        0xffff, _mm_loadu_si128(reinterpret_cast<const __m128i*>(kGramLevels.data())));
    __m512i sums = zero;
    for (std::size_t i = 0; i < size; i += 64) {
        const std::size_t left = size - i;
        const __mmask64 inside = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
        const __m512i codes = _mm512_maskz_loadu_epi8(inside, sketch + i);
        const __m512i lower = _mm512_shuffle_epi8(levels, _mm512_and_si512(codes, half));
        const __m512i upper =
            _mm512_shuffle_epi8(levels, _mm512_and_si512(_mm512_srli_epi16(codes, 4), half));
        sums = _mm512_add_epi64(
            sums, _mm512_sad_epu8(_mm512_min_epu8(lower, _mm512_loadu_si512(low + i)), zero));
        sums = _mm512_add_epi64(
            sums, _mm512_sad_epu8(_mm512_min_epu8(upper, _mm512_loadu_si512(high + i)), zero));
    }
    return sum_of_wide(sums);
}

#endif

}  // namespace

SharedCounts shared_counts(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd >= Simd::avx512) return {letters_avx512, grams_avx512};
    if (simd == Simd::avx2) return {letters_avx2, grams_avx2};
#endif
    return {letters_portable, grams_portable};
}

}  // namespace gputext
