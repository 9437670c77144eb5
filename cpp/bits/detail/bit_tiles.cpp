#include "cpp/bits/detail/bit_tiles.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "cpp/base/stoppable.hpp"
#include "cpp/bits/ones_order.hpp"

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

constexpr std::size_t kTile = BitTiles::tile_places;
constexpr std::size_t kTilesOfStep = 512;

/// What a loop below looks for.
struct Wanted {
    const std::uint64_t* row;
    std::size_t words;
    const std::uint64_t* tiles;  // of all places
    std::uint32_t begin, end;    // places
    std::uint32_t least;
};

/// Appends the places of a tile with these counts whose bit is set.
template <class Count>
[[gnu::always_inline]] inline std::size_t append(unsigned mask, std::uint32_t first,
                                                 const Count* counts, CommonOnes* found) {
    std::size_t added = 0;
    for (; mask != 0; mask &= mask - 1) {
        const auto at = static_cast<std::uint32_t>(std::countr_zero(mask));
        found[added++] = {first + at, static_cast<std::uint32_t>(counts[at])};
    }
    return added;
}

std::size_t find_portable(const Wanted& wanted, CommonOnes* found) {
    std::size_t count = 0;
    for (std::uint32_t place = wanted.begin; place < wanted.end; place += kTile) {
        const std::uint64_t* const tile = wanted.tiles + std::size_t{place} * wanted.words;
        std::uint32_t common[kTile] = {};
        for (std::size_t w = 0; w < wanted.words; ++w)
            for (std::size_t i = 0; i < kTile; ++i)
                common[i] += static_cast<std::uint32_t>(
                    std::popcount(tile[w * kTile + i] & wanted.row[w]));
        unsigned mask = 0;
        for (std::size_t i = 0; i < kTile; ++i)
            mask |= static_cast<unsigned>(common[i] >= wanted.least) << i;
        count += append(mask, place, common, found + count);
    }
    return count;
}

#ifdef GPUTEXT_X86

/// Ones of each byte: of its halves, looked up.
[[gnu::always_inline]] GPUTEXT_TARGET_AVX2 inline __m256i ones_of_bytes(__m256i bytes) {
    const __m256i ones = _mm256_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4, 0, 1, 1, 2,
                                          1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4);
    const __m256i half = _mm256_set1_epi8(15);
    return _mm256_add_epi8(
        _mm256_shuffle_epi8(ones, _mm256_and_si256(bytes, half)),
        _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi16(bytes, 4), half)));
}

GPUTEXT_TARGET_AVX2 std::size_t find_avx2(const Wanted& wanted, CommonOnes* found) {
    constexpr std::size_t kWordsOfSum = 31;  // whose ones a byte has room for
    const __m256i below = _mm256_set1_epi64x(static_cast<long long>(wanted.least) - 1);
    std::size_t count = 0;
    for (std::uint32_t place = wanted.begin; place < wanted.end; place += kTile) {
        const std::uint64_t* const tile = wanted.tiles + std::size_t{place} * wanted.words;
        __m256i common[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        for (std::size_t first = 0; first < wanted.words; first += kWordsOfSum) {
            const std::size_t end = std::min(wanted.words, first + kWordsOfSum);
            __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
            for (std::size_t w = first; w < end; ++w) {
                const __m256i word = _mm256_set1_epi64x(static_cast<long long>(wanted.row[w]));
                for (std::size_t half = 0; half < 2; ++half) {
                    const __m256i words = _mm256_loadu_si256(
                        reinterpret_cast<const __m256i*>(tile + w * kTile + 4 * half));
                    sums[half] =
                        _mm256_add_epi8(sums[half], ones_of_bytes(_mm256_and_si256(words, word)));
                }
            }
            for (std::size_t half = 0; half < 2; ++half)
                common[half] = _mm256_add_epi64(
                    common[half], _mm256_sad_epu8(sums[half], _mm256_setzero_si256()));
        }
        unsigned mask = 0;
        for (std::size_t half = 0; half < 2; ++half)
            mask |= static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(
                        _mm256_cmpgt_epi64(common[half], below))))
                    << (4 * half);
        if (mask == 0) continue;
        std::uint64_t counts[kTile];
        for (std::size_t half = 0; half < 2; ++half)
            _mm256_storeu_si256(reinterpret_cast<__m256i*>(counts + 4 * half), common[half]);
        count += append(mask, place, counts, found + count);
    }
    return count;
}

/// `Words`: of a row, or 0 for any number of them.
template <std::size_t Words>
GPUTEXT_TARGET_AVX512 std::size_t find_avx512(const Wanted& wanted, CommonOnes* found) {
    const std::size_t words = Words == 0 ? wanted.words : Words;
    const __m512i least = _mm512_set1_epi64(static_cast<long long>(wanted.least));
    std::size_t count = 0;
    for (std::uint32_t place = wanted.begin; place < wanted.end; place += kTile) {
        const std::uint64_t* const tile = wanted.tiles + std::size_t{place} * words;
        __m512i common = _mm512_setzero_si512();
        for (std::size_t w = 0; w < words; ++w)
            common = _mm512_add_epi64(
                common, _mm512_popcnt_epi64(_mm512_and_si512(
                            _mm512_loadu_si512(tile + w * kTile),
                            _mm512_set1_epi64(static_cast<long long>(wanted.row[w])))));
        const __mmask8 mask = _mm512_cmpge_epu64_mask(common, least);
        if (mask == 0) continue;
        std::uint64_t counts[kTile];
        _mm512_storeu_si512(counts, common);
        count += append(mask, place, counts, found + count);
    }
    return count;
}

std::size_t find_avx512(const Wanted& wanted, CommonOnes* found) {
    switch (wanted.words) {
        case 1:
            return find_avx512<1>(wanted, found);
        case 2:
            return find_avx512<2>(wanted, found);
        case 4:
            return find_avx512<4>(wanted, found);
        default:
            return find_avx512<0>(wanted, found);
    }
}

#endif

}  // namespace

void copy_row(const Vectors& bits, std::size_t row, std::uint64_t* words) {
    words[words_of_bits(bits.dimensions) - 1] = 0;
    std::memcpy(words, bits.row_bytes(row), row_size(ElementType::bit, bits.dimensions));
}

Status BitTiles::set(const Vectors& bits, std::span<const std::uint32_t> numbers,
                     Execution& execution) {
    const Stop stop = execution.stop();
    words_ = words_of_bits(bits.dimensions);
    if (!stoppable_assign(tiles_, numbers.size() * words_, std::uint64_t{0}, stop))
        return Status::cancelled();
    const std::size_t tiles = numbers.size() / kTile;
    const std::size_t steps = (tiles + kTilesOfStep - 1) / kTilesOfStep;
    execution.begin_phase("placing bits", steps);
    return execution.parallel_for(steps, [&](std::size_t step, unsigned) -> Status {
        std::vector<std::uint64_t> row(words_);
        const std::size_t end = std::min(tiles, (step + 1) * kTilesOfStep) * kTile;
        for (std::size_t place = step * kTilesOfStep * kTile; place < end; ++place) {
            if (stop()) return Status::cancelled();
            if (numbers[place] == kNoRow) continue;
            copy_row(bits, numbers[place], row.data());
            std::uint64_t* const tile = tiles_.data() + place / kTile * kTile * words_;
            for (std::size_t w = 0; w < words_; ++w) tile[w * kTile + place % kTile] = row[w];
        }
        return {};
    });
}

std::size_t BitTiles::find(const std::uint64_t* row, std::size_t begin, std::size_t end,
                           std::uint32_t least, Simd simd, CommonOnes* found) const {
    const Wanted wanted{row,
                        words_,
                        tiles_.data(),
                        static_cast<std::uint32_t>(begin),
                        static_cast<std::uint32_t>(end),
                        least};
#ifdef GPUTEXT_X86
    if (simd >= Simd::avx512) return find_avx512(wanted, found);
    if (simd == Simd::avx2) return find_avx2(wanted, found);
#endif
    return find_portable(wanted, found);
}

}  // namespace gputext
