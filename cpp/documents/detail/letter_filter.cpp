#include "cpp/documents/detail/letter_filter.hpp"

#include <algorithm>
#include <bit>

#include "cpp/documents/ctph.hpp"

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

constexpr std::size_t kVector = 8;  // columns of the widest vector

template <std::size_t Depth>
std::int64_t common_letters(const std::uint64_t* row, const std::uint64_t* words,
                            std::size_t stride, std::size_t column) {
    std::int64_t ones = 0;
    for (std::size_t word = 0; word < Depth; ++word)
        ones += std::popcount(row[word] & words[word * stride + column]);
    return ones;
}

template <std::size_t Depth>
std::size_t filter_portable(const std::uint64_t* row, const LetterCounts& columns,
                            std::size_t begin, std::size_t end, const std::int64_t* least,
                            std::uint32_t* hits) {
    std::size_t count = 0;
    for (std::size_t column = begin; column < end; ++column) {
        hits[count] = static_cast<std::uint32_t>(column);
        count += common_letters<Depth>(row, columns.words(), columns.stride(), column) >=
                 least[column - begin];
    }
    return count;
}

#ifdef GPUTEXT_X86

/// Appends the columns whose bit of `mask` is set.
inline std::size_t append_hits(unsigned mask, std::size_t column, std::uint32_t* hits,
                               std::size_t count) {
    for (; mask != 0; mask &= mask - 1)
        hits[count++] = static_cast<std::uint32_t>(column + std::countr_zero(mask));
    return count;
}

/// Ones of each byte, by looking up its two halves.
GPUTEXT_TARGET_AVX2 inline __m256i ones_of_bytes(__m256i bits) {
    const __m256i ones_of_half =
        _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4,  //
                         0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i half = _mm256_set1_epi8(15);
    const __m256i low = _mm256_shuffle_epi8(ones_of_half, _mm256_and_si256(bits, half));
    const __m256i high =
        _mm256_shuffle_epi8(ones_of_half, _mm256_and_si256(_mm256_srli_epi16(bits, 4), half));
    return _mm256_add_epi8(low, high);
}

template <std::size_t Depth>
GPUTEXT_TARGET_AVX2 std::size_t filter_avx2(const std::uint64_t* row, const LetterCounts& columns,
                                            std::size_t begin, std::size_t end,
                                            const std::int64_t* least, std::uint32_t* hits) {
    const std::uint64_t* words = columns.words();
    const std::size_t stride = columns.stride();
    std::size_t count = 0;
    std::size_t column = begin;
    for (; column + 4 <= end; column += 4) {
        // A byte holds at most 8 * Depth ones; sums of bytes are taken before it overflows.
        __m256i ones = _mm256_setzero_si256();
        for (std::size_t from = 0; from < Depth; from += 16) {
            __m256i bytes = _mm256_setzero_si256();
            for (std::size_t word = from; word < std::min(Depth, from + 16); ++word) {
                const __m256i bits = _mm256_loadu_si256(
                    reinterpret_cast<const __m256i*>(words + word * stride + column));
                bytes = _mm256_add_epi8(
                    bytes, ones_of_bytes(_mm256_and_si256(
                               bits, _mm256_set1_epi64x(static_cast<long long>(row[word])))));
            }
            ones = _mm256_add_epi64(ones, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
        }
        const __m256i wanted =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(least + (column - begin)));
        const __m256i too_few = _mm256_cmpgt_epi64(wanted, ones);
        const auto mask = static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(too_few)));
        if (mask != 15) count = append_hits(~mask & 15, column, hits, count);
    }
    const std::size_t rest =
        filter_portable<Depth>(row, columns, column, end, least + (column - begin), hits + count);
    return count + rest;
}

template <std::size_t Depth>
GPUTEXT_TARGET_AVX512 std::size_t filter_avx512(const std::uint64_t* row,
                                                const LetterCounts& columns, std::size_t begin,
                                                std::size_t end, const std::int64_t* least,
                                                std::uint32_t* hits) {
    const std::uint64_t* words = columns.words();
    const std::size_t stride = columns.stride();
    std::size_t count = 0;
    for (std::size_t column = begin; column < end; column += kVector) {
        __m512i ones = _mm512_setzero_si512();
        for (std::size_t word = 0; word < Depth; ++word) {
            const __m512i bits = _mm512_loadu_si512(words + word * stride + column);
            const __m512i common =
                _mm512_and_si512(bits, _mm512_set1_epi64(static_cast<long long>(row[word])));
            ones = _mm512_add_epi64(ones, _mm512_popcnt_epi64(common));
        }
        const auto inside =
            static_cast<__mmask8>(end - column >= kVector ? 255u : (1u << (end - column)) - 1u);
        const __m512i wanted = _mm512_maskz_loadu_epi64(inside, least + (column - begin));
        const unsigned mask = _mm512_mask_cmpge_epi64_mask(inside, ones, wanted);
        if (mask != 0) count = append_hits(mask, column, hits, count);
    }
    return count;
}

#endif

/// The filter written for just this depth.
template <std::size_t Depth>
LetterFilter filter_of_depth(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return filter_avx512<Depth>;
    if (simd == Simd::avx2) return filter_avx2<Depth>;
#endif
    return filter_portable<Depth>;
}

}  // namespace

LetterCounts::LetterCounts(std::size_t count, std::size_t depth)
    : depth_(depth),
      // A whole vector may be read from any column on.
      stride_((count + 2 * kVector - 1) / kVector * kVector),
      words_(stride_ * depth_),
      excess_(count) {}

void LetterCounts::set(std::size_t column, std::string_view letters) {
    for (const char letter : letters) {
        const std::uint64_t bit = std::uint64_t{1} << signature_letter_value(letter);
        std::size_t word = 0;
        while (word < depth_ && (words_[word * stride_ + column] & bit) != 0) ++word;
        if (word < depth_)
            words_[word * stride_ + column] |= bit;
        else
            ++excess_[column];
    }
}

void LetterCounts::copy_column(std::size_t column, std::uint64_t* words) const {
    for (std::size_t word = 0; word < depth_; ++word) words[word] = words_[word * stride_ + column];
}

std::size_t letter_filter_depth(std::size_t longest_signature) {
    // Letters occur length / 64 times on average; about twice and a half as often is rare.
    std::size_t depth = 4;
    while (depth < LetterCounts::max_depth && depth * 26 < longest_signature) depth *= 2;
    return depth;
}

LetterFilter letter_filter(Simd simd, std::size_t depth) {
    switch (depth) {
        case 4:
            return filter_of_depth<4>(simd);
        case 8:
            return filter_of_depth<8>(simd);
        case 16:
            return filter_of_depth<16>(simd);
        default:
            return filter_of_depth<32>(simd);
    }
}

}  // namespace gputext
