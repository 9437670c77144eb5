#include "cpp/documents/detail/shared_counts.hpp"

#include <algorithm>

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

constexpr std::size_t kGroup = SketchShape::group;  // bytes, and bins of a half of them
static_assert(SketchShape::letters == kGroup);

}  // namespace

QueryPart::QueryPart(const SketchLevels& levels, std::span<const std::uint32_t> counts)
    : bytes_(counts.size() / 2) {
    const std::size_t room = (bytes_ + vector - 1) / vector * vector;
    for (Half* const half : {&low_, &high_}) {
        half->units.resize(room);
        half->levels.resize(room);
        half->shifts.resize(room / 8);
    }
    std::vector<std::uint8_t> units(counts.size());
    levels.units_of(counts, units.data());
    for (std::size_t group = 0; group < levels.shifts.size(); ++group) {
        Half& half = group % 2 == 0 ? low_ : high_;
        const std::size_t to = group / 2 * kGroup;
        const unsigned shift = levels.shifts[group];
        std::copy_n(&units[group * kGroup], kGroup, &half.units[to]);
        std::ranges::copy(levels.levels[group], &half.levels[to]);
        std::fill_n(&half.shifts[to / 8], kGroup / 8, shift);
        for (std::size_t bin = group * kGroup; bin < (group + 1) * kGroup; ++bin) {
            const std::uint32_t within = std::min(counts[bin], levels.least[bin]);
            const std::uint64_t most = std::uint64_t{kMostUnits} << shift;
            const std::uint64_t above = counts[bin] - within;
            at_least_ += within + (above > most ? above - most : 0);
        }
    }
}

namespace {

std::uint64_t half_portable(const QueryPart::Half& half, std::size_t byte, unsigned code) {
    const std::uint8_t level = half.levels[byte / kGroup * kGroup + code];
    return std::uint64_t{std::min(half.units[byte], level)} << half.shifts[byte / 8];
}

std::uint64_t grams_portable(const QueryPart& query, const std::uint8_t* sketch) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < query.bytes(); ++i)
        sum += half_portable(query.low(), i, sketch[i] & 15u) +
               half_portable(query.high(), i, sketch[i] >> 4);
    return sum;
}

void letters_portable(const QueryPart& query, const std::uint8_t* sketches, std::size_t count,
                      std::uint64_t* sums) {
    for (std::size_t i = 0; i < count; ++i)
        sums[i] = grams_portable(query, sketches + i * SketchShape::letters);
}

#ifdef GPUTEXT_X86

GPUTEXT_TARGET_AVX2 inline __m128i load16(const std::uint8_t* from) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
template <class Number>
GPUTEXT_TARGET_AVX2 inline __m256i load32(const Number* from) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

/// Sums over 8 bytes of a half.
GPUTEXT_TARGET_AVX2 inline __m256i sums_of(__m256i codes, __m256i units, __m256i levels,
                                           __m256i shifts) {
    const __m256i shared = _mm256_min_epu8(_mm256_shuffle_epi8(levels, codes), units);
    return _mm256_sllv_epi64(_mm256_sad_epu8(shared, _mm256_setzero_si256()), shifts);
}
GPUTEXT_TARGET_AVX2 inline __m256i sums_of(__m256i codes, const QueryPart::Half& half,
                                           std::size_t at) {
    return sums_of(codes, load32(&half.units[at]), load32(&half.levels[at]),
                   load32(&half.shifts[at / 8]));
}

GPUTEXT_TARGET_AVX2 inline std::uint64_t sum_of(__m256i sums) {
    const __m128i half =
        _mm_add_epi64(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    return static_cast<std::uint64_t>(
        _mm_cvtsi128_si64(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half))));
}

GPUTEXT_TARGET_AVX2 std::uint64_t grams_avx2(const QueryPart& query, const std::uint8_t* sketch) {
    const __m256i half = _mm256_set1_epi8(15);
    __m256i sums = _mm256_setzero_si256();
    for (std::size_t i = 0; i < query.bytes(); i += 32) {
        const __m256i codes = i + 32 <= query.bytes() ? load32(sketch + i)
                                                      : _mm256_zextsi128_si256(load16(sketch + i));
        const __m256i low = _mm256_and_si256(codes, half);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(codes, 4), half);
        sums = _mm256_add_epi64(sums, sums_of(low, query.low(), i));
        sums = _mm256_add_epi64(sums, sums_of(high, query.high(), i));
    }
    return sum_of(sums);
}

/// A half of the letters, for two sketches at once.
struct TwoHalves {
    __m256i units, levels, shifts;
    GPUTEXT_TARGET_AVX2 explicit TwoHalves(const QueryPart::Half& half)
        : units(_mm256_broadcastsi128_si256(load16(half.units.data()))),
          levels(_mm256_broadcastsi128_si256(load16(half.levels.data()))),
          shifts(_mm256_set1_epi64x(static_cast<long long>(half.shifts[0]))) {}
};

GPUTEXT_TARGET_AVX2 void letters_avx2(const QueryPart& query, const std::uint8_t* sketches,
                                      std::size_t count, std::uint64_t* sums) {
    const __m256i half = _mm256_set1_epi8(15);
    const TwoHalves low(query.low()), high(query.high());
    for (std::size_t i = 0; i < count; i += 2) {
        const std::uint8_t* const from = sketches + i * SketchShape::letters;
        const __m256i codes = i + 2 <= count ? load32(from) : _mm256_zextsi128_si256(load16(from));
        const __m256i parts = _mm256_add_epi64(
            sums_of(_mm256_and_si256(codes, half), low.units, low.levels, low.shifts),
            sums_of(_mm256_and_si256(_mm256_srli_epi16(codes, 4), half), high.units, high.levels,
                    high.shifts));
        alignas(32) std::uint64_t found[4];
        _mm256_store_si256(reinterpret_cast<__m256i*>(found), parts);
        sums[i] = found[0] + found[1];
        if (i + 1 < count) sums[i + 1] = found[2] + found[3];
    }
}

// The forms with a mask of ones are the same instructions; GCC 12 warns of the others.

GPUTEXT_TARGET_AVX512 inline __m512i wide_sums_of(__m512i codes, __m512i units, __m512i levels,
                                                  __m512i shifts) {
    const __m512i shared = _mm512_min_epu8(_mm512_shuffle_epi8(levels, codes), units);
    return _mm512_maskz_sllv_epi64(0xff, _mm512_sad_epu8(shared, _mm512_setzero_si512()), shifts);
}
GPUTEXT_TARGET_AVX512 inline __m512i wide_sums_of(__m512i codes, const QueryPart::Half& half,
                                                  std::size_t at) {
    return wide_sums_of(codes, _mm512_loadu_si512(&half.units[at]),
                        _mm512_loadu_si512(&half.levels[at]),
                        _mm512_loadu_si512(&half.shifts[at / 8]));
}

GPUTEXT_TARGET_AVX512 std::uint64_t grams_avx512(const QueryPart& query,
                                                 const std::uint8_t* sketch) {
    const __m512i half = _mm512_set1_epi8(15);
    __m512i sums = _mm512_setzero_si512();
    for (std::size_t i = 0; i < query.bytes(); i += 64) {
        const std::size_t left = query.bytes() - i;
        const __mmask64 inside = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
        const __m512i codes = _mm512_maskz_loadu_epi8(inside, sketch + i);
        const __m512i low = _mm512_and_si512(codes, half);
        const __m512i high = _mm512_and_si512(_mm512_srli_epi16(codes, 4), half);
        sums = _mm512_add_epi64(sums, wide_sums_of(low, query.low(), i));
        sums = _mm512_add_epi64(sums, wide_sums_of(high, query.high(), i));
    }
    return sum_of(_mm256_add_epi64(_mm512_maskz_extracti64x4_epi64(0xff, sums, 0),
                                   _mm512_maskz_extracti64x4_epi64(0xff, sums, 1)));
}

/// A half of the letters, for four sketches at once.
struct FourHalves {
    __m512i units, levels, shifts;
    GPUTEXT_TARGET_AVX512 explicit FourHalves(const QueryPart::Half& half)
        : units(_mm512_maskz_broadcast_i32x4(0xffff, load16(half.units.data()))),
          levels(_mm512_maskz_broadcast_i32x4(0xffff, load16(half.levels.data()))),
          shifts(_mm512_set1_epi64(static_cast<long long>(half.shifts[0]))) {}
};

GPUTEXT_TARGET_AVX512 void letters_avx512(const QueryPart& query, const std::uint8_t* sketches,
                                          std::size_t count, std::uint64_t* sums) {
    const __m512i half = _mm512_set1_epi8(15);
    const FourHalves low(query.low()), high(query.high());
    for (std::size_t i = 0; i < count; i += 4) {
        const std::size_t left = std::min<std::size_t>(4, count - i);
        const __mmask64 inside = ~__mmask64{0} >> (64 - left * SketchShape::letters);
        const __m512i codes = _mm512_maskz_loadu_epi8(inside, sketches + i * SketchShape::letters);
        const __m512i parts = _mm512_add_epi64(
            wide_sums_of(_mm512_and_si512(codes, half), low.units, low.levels, low.shifts),
            wide_sums_of(_mm512_and_si512(_mm512_srli_epi16(codes, 4), half), high.units,
                         high.levels, high.shifts));
        // The sums of a sketch lie side by side.
        const __m512i both = _mm512_add_epi64(
            parts, _mm512_maskz_shuffle_epi32(0xffff, parts, static_cast<_MM_PERM_ENUM>(0x4e)));
        _mm512_mask_storeu_epi64(sums + i, static_cast<__mmask8>((1u << left) - 1),
                                 _mm512_maskz_compress_epi64(0x55, both));
    }
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
