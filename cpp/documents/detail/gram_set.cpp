#include "cpp/documents/detail/gram_set.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "cpp/base/stoppable.hpp"

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

constexpr std::size_t kWord = 64;  // grams that are looked up together
static_assert(kLookEvery % kWord == 0);

constexpr std::uint32_t kFactor = 0x9e3779b1u;

std::uint32_t hash_of(const std::uint8_t* gram) {
    std::uint32_t word;
    static_assert(sizeof word == GramSet::gram);
    std::memcpy(&word, gram, sizeof word);
    word ^= word >> 15;
    return word * kFactor;
}

/// A bit for each gram that begins at text[0] to text[count - 1], at most kWord of them, set if
/// none of a set has its hash. Without branches, which could not be foretold.
std::uint64_t absent_portable(const std::uint64_t* bits, unsigned shift, const std::uint8_t* text,
                              std::size_t count) {
    std::uint64_t absent = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t hash = hash_of(text + i) >> shift;
        absent |= (~(bits[hash / 64] >> hash % 64) & 1) << i;
    }
    return absent;
}

#ifdef GPUTEXT_X86
GPUTEXT_TARGET_AVX512 std::uint64_t absent_avx512(const std::uint64_t* bits, unsigned shift,
                                                  const std::uint8_t* text, std::size_t count) {
    if (count < kWord) return absent_portable(bits, shift, text, count);
    std::uint64_t absent = 0;
    for (std::size_t from = 0; from < kWord; from += 16) {
        __m512i words = _mm512_setzero_si512();
        for (int byte = 0; byte < 4; ++byte) {
            const auto* const at = reinterpret_cast<const __m128i*>(text + from + byte);
            words = _mm512_or_si512(
                words, _mm512_maskz_sll_epi32(
                           0xffff, _mm512_maskz_cvtepu8_epi32(0xffff, _mm_loadu_si128(at)),
                           _mm_cvtsi32_si128(8 * byte)));
        }
        __m512i hashes = _mm512_xor_si512(words, _mm512_maskz_srli_epi32(0xffff, words, 15));
        hashes = _mm512_mullo_epi32(hashes, _mm512_set1_epi32(static_cast<int>(kFactor)));
        hashes = _mm512_maskz_srl_epi32(0xffff, hashes, _mm_cvtsi32_si128(static_cast<int>(shift)));
        const __m512i found = _mm512_mask_i32gather_epi32(
            _mm512_setzero_si512(), 0xffff, _mm512_maskz_srli_epi32(0xffff, hashes, 5), bits, 4);
        const __m512i places = _mm512_and_si512(hashes, _mm512_set1_epi32(31));
        const __m512i wanted = _mm512_maskz_sllv_epi32(0xffff, _mm512_set1_epi32(1), places);
        absent |= std::uint64_t{_mm512_testn_epi32_mask(found, wanted)} << from;
    }
    return absent;
}
#endif

using AbsentGrams = std::uint64_t (*)(const std::uint64_t*, unsigned, const std::uint8_t*,
                                      std::size_t);
AbsentGrams absent_grams([[maybe_unused]] Simd simd) {
#ifdef GPUTEXT_X86
    if (simd >= Simd::avx512) return absent_avx512;
#endif
    return absent_portable;
}

}  // namespace

bool GramSet::assign(Bytes document, Stop stop) {
    // With 32 bits a character, 2 to 3 % of the absent grams collide with a present one.
    constexpr std::size_t least_bits = std::size_t{1} << 16, most_bits = std::size_t{1} << 25;
    const std::size_t wanted = std::bit_ceil(std::min(most_bits, 32 * document.size() + 1));
    const std::size_t bits = std::clamp(wanted, least_bits, most_bits);
    shift_ = static_cast<unsigned>(32 - std::countr_zero(bits));
    if (!stoppable_assign(bits_, bits / 64, std::uint64_t{0}, stop)) return false;
    for (std::size_t at = 0; at + gram <= document.size(); ++at) {
        if (at % kLookEvery == kLookEvery - 1 && stop()) return false;
        const std::uint32_t hash = hash_of(&document[at]) >> shift_;
        bits_[hash / 64] |= std::uint64_t{1} << hash % 64;
    }
    return true;
}

std::size_t GramSet::absent(Bytes other, std::size_t most, Stop stop, Simd simd) const {
    if (other.size() < gram) return 0;
    const std::size_t grams = other.size() - gram + 1;
    const AbsentGrams absent_in = absent_grams(simd);
    std::size_t count = 0;
    std::size_t covered = 0;  // behind the last gram that was counted
    for (std::size_t from = 0; from < grams; from += kWord) {
        if (from % kLookEvery == 0 && from > 0 && stop()) return 0;
        std::uint64_t absent =
            absent_in(bits_.data(), shift_, &other[from], std::min(kWord, grams - from));
        if (covered > from) absent &= ~std::uint64_t{0} << (covered - from);
        while (absent != 0) {
            const auto place = static_cast<std::size_t>(std::countr_zero(absent));
            if (++count > most) return count;
            covered = from + place + gram;
            if (place + gram >= kWord) break;
            absent &= ~std::uint64_t{0} << (place + gram);
        }
    }
    return count;
}

}  // namespace gputext
