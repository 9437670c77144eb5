#include "cpp/documents/detail/sketch_counts.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <tuple>
#include <utility>

#include "cpp/base/simd.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/documents/detail/folded_text.hpp"

namespace gputext {
namespace {

constexpr std::size_t kBlock = 1024;  // characters whose bigrams are hashed together

/// Cells of the `count` bigrams that begin at text[0], text[1], ... Vectorised. The constants were
/// chosen among 60,000 for few collisions of frequent bigrams of English texts and source code.
[[gnu::always_inline]] inline void hash_each(const std::uint8_t* __restrict text, std::size_t count,
                                             std::uint16_t* __restrict out) {
    for (std::size_t i = 0; i < count; ++i) {
        auto hash = static_cast<std::uint16_t>(text[i] | text[i + 1] << 8);
        hash = static_cast<std::uint16_t>(hash * 0x9e13u);
        hash = static_cast<std::uint16_t>(hash ^ hash >> 9);
        hash = static_cast<std::uint16_t>(hash * 0x7fffu);
        out[i] = hash >> (16 - std::countr_zero(kGramCells));
    }
}

[[gnu::optimize("O3")]] void hash_portable(const std::uint8_t* text, std::size_t count,
                                           std::uint16_t* out) {
    hash_each(text, count, out);
}

#ifdef GPUTEXT_X86
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 void hash_avx2(const std::uint8_t* text,
                                                           std::size_t count, std::uint16_t* out) {
    hash_each(text, count, out);
}
#endif

void hash_bigrams(const std::uint8_t* text, std::size_t count, std::uint16_t* out) {
#ifdef GPUTEXT_X86
    if (best_simd() >= Simd::avx2) return hash_avx2(text, count, out);
#endif
    hash_portable(text, count, out);
}

/// Counts each number in the next one of two tables. Unrolled.
template <class Number, class Tables>
[[gnu::always_inline]] inline void count_each(const Number* numbers, std::size_t count,
                                              Tables& tables) {
    static_assert(std::tuple_size_v<Tables> == 2);
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        ++tables[0][numbers[i]];
        ++tables[1][numbers[i + 1]];
        ++tables[0][numbers[i + 2]];
        ++tables[1][numbers[i + 3]];
        ++tables[0][numbers[i + 4]];
        ++tables[1][numbers[i + 5]];
        ++tables[0][numbers[i + 6]];
        ++tables[1][numbers[i + 7]];
    }
    for (; i < count; ++i) ++tables[0][numbers[i]];
}

/// Sums of the tables. Vectorised.
template <class Tables>
[[gnu::optimize("O3")]] void add_tables(const Tables& tables, std::uint32_t* __restrict sums) {
    for (std::size_t i = 0; i < tables[0].size(); ++i) sums[i] = tables[0][i] + tables[1][i];
}

/// A 32-bit hash of bytes, in four lanes of words. Each step is invertible.
class ByteHash {
public:
    /// May be called for parts, all but the last a multiple of `block`. Unrolled; but products of
    /// 64 bits are slow in vectors.
    [[gnu::optimize("O3", "no-tree-vectorize")]] void add(Bytes bytes) {
        Lanes lanes = lanes_;
        std::size_t at = 0;
        for (; at + block <= bytes.size(); at += block) add_block(lanes, &bytes[at]);
        if (at < bytes.size()) {
            std::uint8_t rest[block] = {};
            std::memcpy(rest, &bytes[at], bytes.size() - at);
            add_block(lanes, rest);
        }
        lanes_ = lanes;
    }
    std::uint32_t value(std::size_t size) const {
        std::uint64_t hash = size;
        for (const std::uint64_t lane : lanes_) hash = mixed(hash ^ lane);
        return static_cast<std::uint32_t>(hash >> 32);
    }

    static constexpr std::size_t block = 32;  // bytes

private:
    using Lanes = std::array<std::uint64_t, block / sizeof(std::uint64_t)>;

    [[gnu::always_inline]] static std::uint64_t mixed(std::uint64_t x) {
        x *= 0x9e3779b97f4a7c15u;
        return x ^ x >> 32;
    }
    [[gnu::always_inline]] static void add_block(Lanes& lanes, const std::uint8_t* bytes) {
        for (std::size_t i = 0; i < lanes.size(); ++i) {
            std::uint64_t word;
            std::memcpy(&word, bytes + i * sizeof word, sizeof word);
            lanes[i] = mixed(lanes[i] ^ word);
        }
    }

    Lanes lanes_{1, 2, 3, 4};
};

}  // namespace

SketchCounts::SketchCounts() : folded_(1 + kBlock) {}

void SketchCounts::count_grams(Bytes folded, unsigned half) {
    std::uint16_t cells[kBlock];
    for (std::size_t from = 0; from + 1 < folded.size(); from += kBlock) {
        const std::size_t count = std::min(kBlock, folded.size() - 1 - from);
        hash_bigrams(&folded[from], count, cells);
        count_each(cells, count, gram_counts_[half]);
    }
}

/// Adds the characters to the counts, and their bigrams. If `continued`, folded[0] is a character
/// that was counted before.
void SketchCounts::count_block(Bytes folded, bool continued) {
    const Bytes characters = folded.subspan(continued ? 1 : 0);
    count_each(characters.data(), characters.size(), letter_counts_);
    const std::size_t begin = counted_ - (continued ? 1 : 0);
    const std::size_t middle = (std::size_t{length_} + 1) / 2;
    // The bigrams that begin before the middle need one character behind it.
    const std::size_t first = std::clamp(middle, begin, begin + folded.size()) - begin;
    count_grams(folded.first(std::min(first + 1, folded.size())), 0);
    count_grams(folded.subspan(first), 1);
    counted_ += static_cast<std::uint32_t>(characters.size());
}

void SketchCounts::add_up() {
    add_tables(letter_counts_, letters_.data());
    add_tables(gram_counts_[0], grams_.data());
    add_tables(gram_counts_[1], grams_.data() + kGramCells);
}

void SketchCounts::clear() {
    counted_ = 0;
    std::memset(letter_counts_.data(), 0, sizeof letter_counts_);
    std::memset(gram_counts_.data(), 0, sizeof gram_counts_);
}

bool SketchCounts::count(Bytes document, const CharacterLengths& lengths, Stop stop) {
    static_assert(kLookEvery % ByteHash::block == 0);
    clear();
    ByteHash hash;
    for (std::size_t at = 0; at < document.size(); at += kLookEvery) {
        if (at > 0 && stop()) return false;
        hash.add(document.subspan(at, std::min(kLookEvery, document.size() - at)));
    }
    hash_ = hash.value(document.size());

    const bool narrow = is_narrow(document, lengths, stop);
    length_ = static_cast<std::uint32_t>(narrow ? document.size()
                                                : count_characters(document, lengths, stop));
    if (stop()) return false;
    if (narrow) {
        for (std::size_t at = 0; at < document.size(); at += kLookEvery) {
            if (at > 0 && stop()) return false;
            const std::size_t begin = at == 0 ? 0 : at - 1;
            const std::size_t end = std::min(document.size(), at + kLookEvery);
            count_block(document.subspan(begin, end - begin), at > 0);
        }
    } else {
        std::size_t last_look = 0;
        for (std::size_t at = 0; at < document.size();) {
            const bool continued = at > 0;  // folded_[0] is the last character of the last block
            const std::size_t before = continued ? 1 : 0;
            const std::size_t size =
                before + fold_characters(document, lengths, at, std::span(folded_).subspan(before));
            count_block({folded_.data(), size}, continued);
            folded_[0] = folded_[size - 1];
            if (at - last_look >= kLookEvery) {
                if (stop()) return false;
                last_look = at;
            }
        }
    }
    add_up();
    return true;
}

void add_in_bins(std::span<const std::uint32_t> cells, const SketchPart& part,
                 std::span<std::uint32_t> bins) {
    std::ranges::fill(bins, 0);
    if (part.bins.size() == cells.size()) {
        for (std::size_t i = 0; i < cells.size(); ++i) bins[part.bins[i]] += cells[i];
    } else {
        const std::size_t half = cells.size() / 2;
        for (std::size_t i = 0; i < half; ++i) bins[part.bins[i]] += cells[i] + cells[half + i];
    }
}

}  // namespace gputext
