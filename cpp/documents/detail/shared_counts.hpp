// cpp/documents/detail/shared_counts.hpp - what a query and a sketch share of letters and bigrams

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/simd.hpp"
#include "cpp/documents/detail/sketch_levels.hpp"

namespace gputext {

/// Documents whose letters are looked at at once: a bit of a word each.
inline constexpr std::size_t kLetterBatch = 64;

/// The letters of a query, to be compared with those of sketches of one length class: what each
/// code of a bin says that the query has beyond the document (Andre, Kermarrec, Le Scouarnec 2015:
/// tables that stay in registers).
class QueryLetters {
public:
    /// A document is excluded that lacks more than `allowed` of the query's characters.
    QueryLetters(const LetterLevels& levels, std::span<const std::uint32_t> bins,
                 std::uint64_t allowed);

    using Table = std::array<std::uint8_t, 16>;
    /// For each bin and code the characters of the query that such a document lacks, in units,
    /// rounded down.
    const std::array<Table, SketchShape::letter_bins>& tables() const { return tables_; }
    /// A document is excluded if its units over all bins come to this number, at most 255, where
    /// sums saturate.
    std::uint8_t excluding() const { return excluding_; }
    std::uint64_t unit() const { return unit_; }  // characters

private:
    std::array<Table, SketchShape::letter_bins> tables_;
    std::uint64_t unit_;
    std::uint8_t excluding_;
};

/// The bigrams of a query, to be compared with those of sketches of one length class.
class QueryGrams {
public:
    /// The query and a document share at most the sum of at_least() and of what SharedCounts finds.
    QueryGrams(const GramLevels& levels, std::span<const std::uint32_t> counts);

    std::size_t bytes() const { return bytes_; }  // of a sketch
    std::uint64_t at_least() const { return at_least_; }

    static constexpr std::size_t most_bytes = SketchShape::most_bins / 2;

    /// The query's part for the lower halves of a sketch's bytes, or for the upper ones; zeros up
    /// to a multiple of `vector`, undefined behind these.
    struct Half {
        std::array<std::uint8_t, most_bytes> units;        // of the query, by byte of a sketch
        std::array<std::uint8_t, most_bytes> levels;       // 16 for each 16 bytes of a sketch
        std::array<std::uint64_t, most_bytes / 8> shifts;  // of 8 bytes each
    };
    const Half& low() const { return low_; }
    const Half& high() const { return high_; }

    static constexpr std::size_t vector = 64;
    static_assert(most_bytes % vector == 0);

private:
    std::size_t bytes_;
    std::uint64_t at_least_ = 0;
    Half low_, high_;
};

struct SharedCounts {
    /// For kLetterBatch documents, whose byte i of letters is sketches[i * stride + document],
    /// writes the sums of units, saturated at 255, and returns a bit each that is set if the sum
    /// does not exclude the document.
    std::uint64_t (*letters)(const QueryLetters& query, const std::uint8_t* sketches,
                             std::size_t stride, std::uint8_t* sums);

    /// The sum of the minima of the query's units and a sketch's levels, as counts. The sketch has
    /// query.bytes() bytes, a multiple of 16.
    std::uint64_t (*grams)(const QueryGrams& query, const std::uint8_t* sketch);
};
SharedCounts shared_counts(Simd simd);

}  // namespace gputext
