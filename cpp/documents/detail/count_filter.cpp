#include "cpp/documents/detail/count_filter.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "cpp/documents/detail/folded_text.hpp"

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

std::size_t trigram_bin(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint32_t hash = ((a * 0x01000193u + b) * 0x01000193u + c) * 0x9e3779b1u;
    return hash >> 20;
}

/// `next(at)` gives the character at a byte and moves behind it.
template <class Next>
bool count_all(std::size_t size, Next&& next, Stop stop, DocumentFeatures& features) {
    constexpr std::size_t look_every = std::size_t{1} << 22;  // bytes
    std::uint32_t before_last = 0;
    std::uint32_t last = 0;
    std::size_t characters = 0;
    for (std::size_t at = 0; at < size;) {
        for (const std::size_t end = std::min(size, at + look_every); at < end;) {
            const std::uint32_t symbol = next(at);
            ++features.characters[folded_character(symbol)];
            if (++characters > 2) {
                std::uint8_t& bin = features.trigrams[trigram_bin(before_last, last, symbol)];
                if (bin < DocumentFeatures::most_trigrams)
                    ++bin;
                else
                    ++features.trigram_excess;
            }
            before_last = last;
            last = symbol;
        }
        if (at < size && stop()) return false;
    }
    return true;
}

/// Two documents share at most the smaller of their excesses.
std::uint64_t shared_excess_trigrams(const DocumentFeatures& a, const DocumentFeatures& b) {
    return std::min(a.trigram_excess, b.trigram_excess);
}

std::uint64_t characters_portable(const DocumentFeatures& a, const DocumentFeatures& b) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < a.characters.size(); ++i)
        sum += std::min(a.characters[i], b.characters[i]);
    return sum;
}

std::uint64_t trigrams_portable(const DocumentFeatures& a, const DocumentFeatures& b) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < a.trigrams.size(); ++i)
        sum += std::min(a.trigrams[i], b.trigrams[i]);
    return sum + shared_excess_trigrams(a, b);
}

using ClassRow = std::array<std::uint16_t, CharacterClasses::classes>;

std::size_t class_filter_portable(const ClassRow& row, const CharacterClasses& columns,
                                  std::size_t begin, std::size_t end, std::uint16_t least,
                                  std::uint32_t* hits) {
    std::size_t count = 0;
    for (std::size_t column = begin; column < end; ++column) {
        std::uint32_t shared = 0;
        for (std::size_t k = 0; k < row.size(); ++k)
            shared += std::min(row[k], columns.counts()[k * columns.stride() + column]);
        hits[count] = static_cast<std::uint32_t>(column);
        count += shared >= least;
    }
    return count;
}

#ifdef GPUTEXT_X86

/// Appends the columns whose bit of `mask` is set.
std::size_t store_hits(std::uint32_t mask, std::size_t begin, std::uint32_t* hits) {
    std::size_t count = 0;
    for (; mask != 0; mask &= mask - 1)
        hits[count++] = static_cast<std::uint32_t>(begin + std::countr_zero(mask));
    return count;
}

/// The bits of a vector's columns that are in [begin, end).
std::uint32_t columns_inside(std::size_t begin, std::size_t end) {
    return end - begin >= 32 ? ~0u : (1u << (end - begin)) - 1;
}

GPUTEXT_TARGET_AVX2 std::size_t class_filter_avx2(const ClassRow& row,
                                                  const CharacterClasses& columns,
                                                  std::size_t begin, std::size_t end,
                                                  std::uint16_t least, std::uint32_t* hits) {
    __m256i low = _mm256_setzero_si256();
    __m256i high = _mm256_setzero_si256();
    for (std::size_t k = 0; k < row.size(); ++k) {
        const auto* counts = columns.counts() + k * columns.stride() + begin;
        const __m256i mine = _mm256_set1_epi16(static_cast<short>(row[k]));
        const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(counts));
        const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(counts + 16));
        low = _mm256_adds_epu16(low, _mm256_min_epu16(mine, a));
        high = _mm256_adds_epu16(high, _mm256_min_epu16(mine, b));
    }
    // Unsigned x >= y where max(x, y) is x. The packing crosses the vectors' halves over.
    const __m256i wanted = _mm256_set1_epi16(static_cast<short>(least));
    const __m256i enough_low = _mm256_cmpeq_epi16(_mm256_max_epu16(low, wanted), low);
    const __m256i enough_high = _mm256_cmpeq_epi16(_mm256_max_epu16(high, wanted), high);
    const __m256i enough =
        _mm256_permute4x64_epi64(_mm256_packs_epi16(enough_low, enough_high), 0xd8);
    const auto mask = static_cast<std::uint32_t>(_mm256_movemask_epi8(enough));
    return store_hits(mask & columns_inside(begin, end), begin, hits);
}

GPUTEXT_TARGET_AVX512 std::size_t class_filter_avx512(const ClassRow& row,
                                                      const CharacterClasses& columns,
                                                      std::size_t begin, std::size_t end,
                                                      std::uint16_t least, std::uint32_t* hits) {
    __m512i shared = _mm512_setzero_si512();
    for (std::size_t k = 0; k < row.size(); ++k) {
        const __m512i theirs = _mm512_loadu_si512(columns.counts() + k * columns.stride() + begin);
        const __m512i mine = _mm512_set1_epi16(static_cast<short>(row[k]));
        shared = _mm512_adds_epu16(shared, _mm512_min_epu16(mine, theirs));
    }
    const std::uint32_t mask =
        _mm512_cmpge_epu16_mask(shared, _mm512_set1_epi16(static_cast<short>(least)));
    return store_hits(mask & columns_inside(begin, end), begin, hits);
}

template <class Lane, class Vector>
std::uint64_t sum_of_lanes(const Vector& vector) {
    std::array<Lane, sizeof(Vector) / sizeof(Lane)> lanes;
    std::memcpy(lanes.data(), &vector, sizeof vector);
    return std::accumulate(lanes.begin(), lanes.end(), std::uint64_t{0});
}

GPUTEXT_TARGET_AVX2 std::uint64_t characters_avx2(const DocumentFeatures& a,
                                                  const DocumentFeatures& b) {
    __m256i sums = _mm256_setzero_si256();
    for (std::size_t i = 0; i < a.characters.size(); i += 8) {
        const auto* x = reinterpret_cast<const __m256i*>(a.characters.data() + i);
        const auto* y = reinterpret_cast<const __m256i*>(b.characters.data() + i);
        const __m256i both = _mm256_min_epu32(_mm256_load_si256(x), _mm256_load_si256(y));
        sums = _mm256_add_epi32(sums, both);
    }
    return sum_of_lanes<std::uint32_t>(sums);
}

GPUTEXT_TARGET_AVX2 std::uint64_t trigrams_avx2(const DocumentFeatures& a,
                                                const DocumentFeatures& b) {
    __m256i sums = _mm256_setzero_si256();
    for (std::size_t i = 0; i < a.trigrams.size(); i += 32) {
        const auto* x = reinterpret_cast<const __m256i*>(a.trigrams.data() + i);
        const auto* y = reinterpret_cast<const __m256i*>(b.trigrams.data() + i);
        const __m256i both = _mm256_min_epu8(_mm256_load_si256(x), _mm256_load_si256(y));
        sums = _mm256_add_epi64(sums, _mm256_sad_epu8(both, _mm256_setzero_si256()));
    }
    return sum_of_lanes<std::uint64_t>(sums) + shared_excess_trigrams(a, b);
}

GPUTEXT_TARGET_AVX512 std::uint64_t characters_avx512(const DocumentFeatures& a,
                                                      const DocumentFeatures& b) {
    __m512i sums = _mm512_setzero_si512();
    for (std::size_t i = 0; i < a.characters.size(); i += 16) {
        const __m512i x = _mm512_load_si512(a.characters.data() + i);
        const __m512i y = _mm512_load_si512(b.characters.data() + i);
        sums = _mm512_add_epi32(sums, _mm512_maskz_min_epu32(0xffff, x, y));
    }
    return sum_of_lanes<std::uint32_t>(sums);
}

GPUTEXT_TARGET_AVX512 std::uint64_t trigrams_avx512(const DocumentFeatures& a,
                                                    const DocumentFeatures& b) {
    __m512i sums = _mm512_setzero_si512();
    for (std::size_t i = 0; i < a.trigrams.size(); i += 64) {
        const __m512i both = _mm512_min_epu8(_mm512_load_si512(a.trigrams.data() + i),
                                             _mm512_load_si512(b.trigrams.data() + i));
        sums = _mm512_add_epi64(sums, _mm512_sad_epu8(both, _mm512_setzero_si512()));
    }
    return sum_of_lanes<std::uint64_t>(sums) + shared_excess_trigrams(a, b);
}

#endif

}  // namespace

bool DocumentFeatures::set(Bytes document, const CharacterLengths& lengths, Stop stop) {
    *this = {};
    if (is_narrow(document, lengths, stop)) {
        const auto next = [&](std::size_t& at) -> std::uint32_t { return document[at++]; };
        return count_all(document.size(), next, stop, *this);
    }
    const auto next = [&](std::size_t& at) { return next_character(document, lengths, at); };
    return count_all(document.size(), next, stop, *this);
}

void CharacterClasses::resize(std::size_t columns) {
    // Padded, as a whole vector may be read from any column on.
    stride_ = columns + vector;
    counts_.assign(classes * stride_, 0);
}

void CharacterClasses::set(std::size_t column, const DocumentFeatures& features) {
    constexpr std::uint32_t most = UINT16_MAX;
    std::array<std::uint32_t, classes> sums{};
    for (std::size_t bin = 0; bin < features.characters.size(); ++bin)
        sums[bin % classes] += features.characters[bin];
    for (std::size_t k = 0; k < classes; ++k)
        counts_[k * stride_ + column] = static_cast<std::uint16_t>(std::min(sums[k], most));
}

std::array<std::uint16_t, CharacterClasses::classes> CharacterClasses::column(
    std::size_t column) const {
    std::array<std::uint16_t, classes> counts;
    for (std::size_t k = 0; k < classes; ++k) counts[k] = counts_[k * stride_ + column];
    return counts;
}

ClassFilter class_filter(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return class_filter_avx512;
    if (simd == Simd::avx2) return class_filter_avx2;
#endif
    return class_filter_portable;
}

SharedFeatures shared_features(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return {characters_avx512, trigrams_avx512};
    if (simd == Simd::avx2) return {characters_avx2, trigrams_avx2};
#endif
    return {characters_portable, trigrams_portable};
}

}  // namespace gputext
