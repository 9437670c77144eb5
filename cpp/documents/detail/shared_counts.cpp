#include "cpp/documents/detail/shared_counts.hpp"

#include <algorithm>

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

constexpr std::size_t kGroup = SketchShape::group;  // bytes, and bins of a half of them

}  // namespace

QueryLetters::QueryLetters(const LetterLevels& levels, std::span<const std::uint32_t> bins,
                           std::uint64_t allowed)
    : unit_(allowed / UINT8_MAX + 1), excluding_(static_cast<std::uint8_t>(allowed / unit_ + 1)) {
    // A product is cheaper than a division. Where it is rounded it may be one unit less, never
    // more.
    const double units = 1.0 / static_cast<double>(unit_);
    for (std::size_t bin = 0; bin < tables_.size(); ++bin) {
        Table& table = tables_[bin];
        table.back() = 0;
        for (std::size_t code = 0; code < levels.counts[bin].size(); ++code) {
            const std::uint32_t most = levels.counts[bin][code];
            const std::uint32_t lacks = bins[bin] - std::min(bins[bin], most);
            table[code] = static_cast<std::uint8_t>(std::min<double>(lacks * units, UINT8_MAX));
        }
    }
}

QueryGrams::QueryGrams(const GramLevels& levels, std::span<const std::uint32_t> counts)
    : bytes_(counts.size() / 2) {
    const std::size_t room = (bytes_ + vector - 1) / vector * vector;
    for (Half* const half : {&low_, &high_}) {
        std::fill_n(&half->units[0], room, std::uint8_t{0});
        std::fill_n(&half->levels[0], room, std::uint8_t{0});
        std::fill_n(&half->shifts[0], room / 8, std::uint64_t{0});
    }
    std::array<std::uint8_t, SketchShape::most_bins> units;
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

std::uint64_t half_portable(const QueryGrams::Half& half, std::size_t byte, unsigned code) {
    const std::uint8_t level = half.levels[byte / kGroup * kGroup + code];
    return std::uint64_t{std::min(half.units[byte], level)} << half.shifts[byte / 8];
}

std::uint64_t grams_portable(const QueryGrams& query, const std::uint8_t* sketch) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < query.bytes(); ++i)
        sum += half_portable(query.low(), i, sketch[i] & 15u) +
               half_portable(query.high(), i, sketch[i] >> 4);
    return sum;
}

std::uint64_t letters_portable(const QueryLetters& query, const std::uint8_t* sketches,
                               std::size_t stride, std::uint8_t* sums) {
    std::fill_n(sums, kLetterBatch, std::uint8_t{0});
    for (std::size_t i = 0; i < SketchShape::letters; ++i) {
        const QueryLetters::Table& low = query.tables()[2 * i];
        const QueryLetters::Table& high = query.tables()[2 * i + 1];
        for (std::size_t document = 0; document < kLetterBatch; ++document) {
            const unsigned codes = sketches[i * stride + document];
            const unsigned sum = sums[document] + low[codes & 15u] + high[codes >> 4];
            sums[document] = static_cast<std::uint8_t>(std::min<unsigned>(sum, UINT8_MAX));
        }
    }
    std::uint64_t left = 0;
    for (std::size_t document = 0; document < kLetterBatch; ++document)
        left |= std::uint64_t{sums[document] < query.excluding()} << document;
    return left;
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
GPUTEXT_TARGET_AVX2 inline __m256i sums_of(__m256i codes, const QueryGrams::Half& half,
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

GPUTEXT_TARGET_AVX2 std::uint64_t grams_avx2(const QueryGrams& query, const std::uint8_t* sketch) {
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

GPUTEXT_TARGET_AVX2 std::uint64_t letters_avx2(const QueryLetters& query,
                                               const std::uint8_t* sketches, std::size_t stride,
                                               std::uint8_t* sums) {
    const __m256i half = _mm256_set1_epi8(15);
    __m256i first = _mm256_setzero_si256(), second = _mm256_setzero_si256();
    for (std::size_t i = 0; i < SketchShape::letters; ++i) {
        const __m256i low = _mm256_broadcastsi128_si256(load16(query.tables()[2 * i].data()));
        const __m256i high = _mm256_broadcastsi128_si256(load16(query.tables()[2 * i + 1].data()));
        const auto add = [&](__m256i before, const std::uint8_t* from) GPUTEXT_TARGET_AVX2 {
            const __m256i codes = load32(from);
            before =
                _mm256_adds_epu8(before, _mm256_shuffle_epi8(low, _mm256_and_si256(codes, half)));
            return _mm256_adds_epu8(
                before,
                _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16(codes, 4), half)));
        };
        first = add(first, sketches + i * stride);
        second = add(second, sketches + i * stride + 32);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums), first);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + 32), second);
    const __m256i excluding = _mm256_set1_epi8(static_cast<char>(query.excluding()));
    const auto excluded = [&](__m256i found) GPUTEXT_TARGET_AVX2 {
        return static_cast<std::uint32_t>(
            _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(found, excluding), found)));
    };
    return ~(excluded(first) | std::uint64_t{excluded(second)} << 32);
}

// The forms with a mask of ones are the same instructions; GCC 12 warns of the others.

GPUTEXT_TARGET_AVX512 inline __m512i wide_sums_of(__m512i codes, __m512i units, __m512i levels,
                                                  __m512i shifts) {
    const __m512i shared = _mm512_min_epu8(_mm512_shuffle_epi8(levels, codes), units);
    return _mm512_maskz_sllv_epi64(0xff, _mm512_sad_epu8(shared, _mm512_setzero_si512()), shifts);
}
GPUTEXT_TARGET_AVX512 inline __m512i wide_sums_of(__m512i codes, const QueryGrams::Half& half,
                                                  std::size_t at) {
    return wide_sums_of(codes, _mm512_loadu_si512(&half.units[at]),
                        _mm512_loadu_si512(&half.levels[at]),
                        _mm512_loadu_si512(&half.shifts[at / 8]));
}

GPUTEXT_TARGET_AVX512 std::uint64_t grams_avx512(const QueryGrams& query,
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

GPUTEXT_TARGET_AVX512 std::uint64_t letters_avx512(const QueryLetters& query,
                                                   const std::uint8_t* sketches, std::size_t stride,
                                                   std::uint8_t* sums) {
    const __m512i half = _mm512_set1_epi8(15);
    __m512i all = _mm512_setzero_si512();
    for (std::size_t i = 0; i < SketchShape::letters; ++i) {
        const __m512i codes = _mm512_loadu_si512(sketches + i * stride);
        const __m512i low =
            _mm512_maskz_broadcast_i32x4(0xffff, load16(query.tables()[2 * i].data()));
        const __m512i high =
            _mm512_maskz_broadcast_i32x4(0xffff, load16(query.tables()[2 * i + 1].data()));
        all = _mm512_adds_epu8(all, _mm512_shuffle_epi8(low, _mm512_and_si512(codes, half)));
        all = _mm512_adds_epu8(
            all, _mm512_shuffle_epi8(high, _mm512_and_si512(_mm512_srli_epi16(codes, 4), half)));
    }
    _mm512_storeu_si512(sums, all);
    return _mm512_cmplt_epu8_mask(all, _mm512_set1_epi8(static_cast<char>(query.excluding())));
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
