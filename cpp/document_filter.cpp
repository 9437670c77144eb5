#include "cpp/document_filter.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "cpp/stoppable.hpp"

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

/// Characters below 0x80 have a bin each; the others share the upper half, where single-byte
/// characters again have one each.
std::size_t character_bin(std::uint32_t symbol) {
    return symbol < 256 ? symbol : 128 + (symbol * 0x9e3779b1u >> 25);
}

std::size_t trigram_bin(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint32_t hash = ((a * 0x01000193u + b) * 0x01000193u + c) * 0x9e3779b1u;
    return hash >> 20;
}

template <class Count>
void count_one(Count& bin, Count most, std::uint32_t& excess) {
    if (bin < most)
        ++bin;
    else
        ++excess;
}

template <class Symbol>
void count(const Symbol* symbols, std::size_t begin, std::size_t end, DocumentFeatures& features) {
    for (std::size_t i = begin; i < end; ++i)
        count_one(features.characters[character_bin(symbols[i])], DocumentFeatures::most_characters,
                  features.character_excess);
    for (std::size_t i = std::max<std::size_t>(begin, 2); i < end; ++i)
        count_one(features.trigrams[trigram_bin(symbols[i - 2], symbols[i - 1], symbols[i])],
                  DocumentFeatures::most_trigrams, features.trigram_excess);
}

template <class Symbol>
void count_all(const Symbol* symbols, std::size_t size, DocumentFeatures& features, Stop stop) {
    for (std::size_t begin = 0; begin < size && !stop(); begin += kLookEvery)
        count(symbols, begin, std::min(size, begin + kLookEvery), features);
}

// What lies beyond the counts is shared at most as far as both have any.

std::uint64_t shared_excess_characters(const DocumentFeatures& a, const DocumentFeatures& b) {
    return std::min(a.character_excess, b.character_excess);
}

std::uint64_t shared_excess_trigrams(const DocumentFeatures& a, const DocumentFeatures& b) {
    return std::min(a.trigram_excess, b.trigram_excess);
}

std::uint64_t characters_portable(const DocumentFeatures& a, const DocumentFeatures& b) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < a.characters.size(); ++i)
        sum += std::min(a.characters[i], b.characters[i]);
    return sum + shared_excess_characters(a, b);
}

std::uint64_t trigrams_portable(const DocumentFeatures& a, const DocumentFeatures& b) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < a.trigrams.size(); ++i)
        sum += std::min(a.trigrams[i], b.trigrams[i]);
    return sum + shared_excess_trigrams(a, b);
}

#ifdef GPUTEXT_X86

template <class Lane, class Vector>
std::uint64_t sum_of_lanes(const Vector& vector) {
    std::array<Lane, sizeof(Vector) / sizeof(Lane)> lanes;
    std::memcpy(lanes.data(), &vector, sizeof vector);
    return std::accumulate(lanes.begin(), lanes.end(), std::uint64_t{0});
}

GPUTEXT_TARGET_AVX2 std::uint64_t characters_avx2(const DocumentFeatures& a,
                                                  const DocumentFeatures& b) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sums = _mm256_setzero_si256();
    for (std::size_t i = 0; i < a.characters.size(); i += 16) {
        const auto* x = reinterpret_cast<const __m256i*>(a.characters.data() + i);
        const auto* y = reinterpret_cast<const __m256i*>(b.characters.data() + i);
        const __m256i both = _mm256_min_epu16(_mm256_load_si256(x), _mm256_load_si256(y));
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(both, ones));
    }
    return sum_of_lanes<std::uint32_t>(sums) + shared_excess_characters(a, b);
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
    const __m512i ones = _mm512_set1_epi16(1);
    __m512i sums = _mm512_setzero_si512();
    for (std::size_t i = 0; i < a.characters.size(); i += 32) {
        const __m512i both = _mm512_min_epu16(_mm512_load_si512(a.characters.data() + i),
                                              _mm512_load_si512(b.characters.data() + i));
        sums = _mm512_add_epi32(sums, _mm512_madd_epi16(both, ones));
    }
    return sum_of_lanes<std::uint32_t>(sums) + shared_excess_characters(a, b);
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

void DocumentFeatures::set(Bytes document, const CharacterLengths& lengths,
                           std::vector<std::uint32_t>& symbols, Stop stop) {
    *this = {};
    if (is_narrow(document, lengths, stop)) {
        count_all(document.data(), document.size(), *this, stop);
    } else {
        decode_characters(document, lengths, symbols, stop);
        count_all(symbols.data(), symbols.size(), *this, stop);
    }
}

SharedFeatures shared_features(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return {characters_avx512, trigrams_avx512};
    if (simd == Simd::avx2) return {characters_avx2, trigrams_avx2};
#endif
    return {characters_portable, trigrams_portable};
}

}  // namespace gputext
