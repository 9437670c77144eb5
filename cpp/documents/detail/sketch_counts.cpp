#include "cpp/documents/detail/sketch_counts.hpp"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "cpp/base/simd.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/documents/detail/folded_character.hpp"

namespace gputext {
namespace {

constexpr std::size_t kBlock = 1024;  // characters whose bigrams are hashed together

/// The class of each folded character. What texts have most has a class of its own.
constexpr std::array<std::uint8_t, 256> classes_of_characters() {
    std::array<std::uint8_t, 256> classes{};
    for (unsigned c = 0; c < 256; ++c) {
        unsigned result = 63;
        if (c >= 'a' && c <= 'z')
            result = c - 'a';
        else if (c == ' ')
            result = 26;
        else if (c == '\n')
            result = 27;
        else if (c >= '0' && c <= '9')
            result = 28 + (c - '0');
        else if (c >= 'A' && c <= 'Z')
            result = 38 + (c - 'A') / 2;
        else if (c >= 0x80)
            result = (c * 37u) % 64;
        classes[c] = static_cast<std::uint8_t>(result);
    }
    constexpr char own[] = {'.', ',', ';', ':', '(', ')', '-', '/', '_', '"', '\'', '='};
    for (unsigned i = 0; i < sizeof own; ++i)
        classes[static_cast<std::uint8_t>(own[i])] = static_cast<std::uint8_t>(51 + i);
    return classes;
}

constexpr std::array<std::uint8_t, 256> kClasses = classes_of_characters();

/// Bins of the `count` bigrams that begin at text[0], text[1], ... Vectorised. The constants were
/// chosen among 900,000 for few collisions of frequent bigrams of English texts and source code:
/// of Medline's abstracts within a rate of 0.05, 0.15 % are left instead of 0.47 % with others.
[[gnu::always_inline]] inline void hash_each(const std::uint8_t* __restrict text, std::size_t count,
                                             std::uint16_t bins, std::uint16_t* __restrict out) {
    for (std::size_t i = 0; i < count; ++i) {
        auto hash = static_cast<std::uint16_t>(text[i] | text[i + 1] << 8);
        hash = static_cast<std::uint16_t>(hash * 0x4809u);
        hash = static_cast<std::uint16_t>(hash ^ hash >> 8);
        hash = static_cast<std::uint16_t>(hash * 0x6a43u);
        out[i] = static_cast<std::uint16_t>(std::uint32_t{hash} * bins >> 16);
    }
}

[[gnu::optimize("O3")]] void hash_portable(const std::uint8_t* text, std::size_t count,
                                           std::uint16_t bins, std::uint16_t* out) {
    hash_each(text, count, bins, out);
}

#ifdef GPUTEXT_X86
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 void hash_avx2(const std::uint8_t* text,
                                                           std::size_t count, std::uint16_t bins,
                                                           std::uint16_t* out) {
    hash_each(text, count, bins, out);
}
#endif

void hash_bigrams(const std::uint8_t* text, std::size_t count, std::uint16_t bins,
                  std::uint16_t* out) {
#ifdef GPUTEXT_X86
    if (best_simd() >= Simd::avx2) return hash_avx2(text, count, bins, out);
#endif
    hash_portable(text, count, bins, out);
}

/// Counts each number in the next one of the tables. Unrolled.
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

SketchCounts::SketchCounts(std::size_t bins)
    : grams_(bins), gram_counts_(bins * gram_tables), folded_(1 + kBlock) {}

/// Adds the characters to the counts, and their bigrams. If `continued`, folded[0] is a character
/// that was counted before.
void SketchCounts::count_bytes(Bytes folded, bool continued) {
    const Bytes characters = folded.subspan(continued ? 1 : 0);
    count_each(characters.data(), characters.size(), letter_counts_);

    const auto bins = static_cast<std::uint16_t>(grams_.size());
    GramTables tables;
    for (std::size_t table = 0; table < gram_tables; ++table)
        tables[table] = gram_counts_.data() + table * bins;
    std::uint16_t hashes[kBlock];
    for (std::size_t from = 0; from + 1 < folded.size(); from += kBlock) {
        const std::size_t count = std::min(kBlock, folded.size() - 1 - from);
        hash_bigrams(&folded[from], count, bins, hashes);
        count_each(hashes, count, tables);
    }
}

/// Sums of the tables. Vectorised.
[[gnu::optimize("O3")]] void SketchCounts::add_up() {
    std::array<std::uint32_t, 256> characters;
    for (std::size_t byte = 0; byte < characters.size(); ++byte) {
        std::uint32_t sum = 0;
        for (const auto& table : letter_counts_) sum += table[byte];
        characters[byte] = sum;
    }
    letters_.fill(0);
    // Not in their order: neighbours of one class would wait for each other.
    for (std::size_t i = 0; i < characters.size(); ++i) {
        const std::size_t byte = i * 37 % characters.size();
        letters_[kClasses[byte]] += characters[byte];
    }
    const std::size_t bins = grams_.size();
    std::uint32_t* const __restrict sums = grams_.data();
    const std::uint32_t* const first = gram_counts_.data();
    const std::uint32_t* const second = first + bins;
    for (std::size_t bin = 0; bin < bins; ++bin) sums[bin] = first[bin] + second[bin];
}

void SketchCounts::clear() {
    length_ = 0;
    std::memset(letter_counts_.data(), 0, sizeof letter_counts_);
    std::fill(gram_counts_.begin(), gram_counts_.end(), 0u);
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

    if (is_narrow(document, lengths, stop)) {
        for (std::size_t at = 0; at < document.size(); at += kLookEvery) {
            if (at > 0 && stop()) return false;
            const std::size_t begin = at == 0 ? 0 : at - 1;
            const std::size_t end = std::min(document.size(), at + kLookEvery);
            count_bytes(document.subspan(begin, end - begin), at > 0);
        }
        length_ = static_cast<std::uint32_t>(document.size());
    } else {
        std::size_t last_look = 0;
        for (std::size_t at = 0; at < document.size();) {
            const bool continued = at > 0;  // folded_[0] is the last character of the last block
            std::size_t size = continued ? 1 : 0;
            while (size < folded_.size() && at < document.size())
                folded_[size++] = folded_character(next_character(document, lengths, at));
            count_bytes({folded_.data(), size}, continued);
            length_ += static_cast<std::uint32_t>(size - (continued ? 1 : 0));
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

}  // namespace gputext
