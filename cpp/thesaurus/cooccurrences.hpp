// cpp/thesaurus/cooccurrences.hpp - counts co-occurrences of words by relative position
//
// A triple <word, offset, neighbor> says that the neighbor stands `offset` places behind the word
// (before it, when negative), within a window and in the same text. Source: the 2015 thesis,
// section 3.3, after DISCO: relative positions in place of grammatical relations.
//
// <a, k, b> and <b, -k, a> are counted alike, so that only positive offsets have to be looked for.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// The words of texts in their order, a view. Words outside the vocabulary are left out but keep
/// their places: positions say where each word stands, ascending, and equal for the variants of one
/// word, which are no neighbors of each other. The last position of a text and the first one of
/// the next are more than any window apart.
struct TokenStream {
    std::span<const std::uint32_t> words;      // below CooccurrenceShape::words
    std::span<const std::uint32_t> positions;  // as many
};

struct CooccurrenceShape {
    static constexpr std::uint32_t kMostWindow = 100;

    std::uint32_t words = 0;   // of the vocabulary
    std::uint32_t window = 3;  // places before and behind a word, 1 .. kMostWindow
    /// Whether a neighbor is another feature in each place. If not, there is one relation for all.
    bool positions = true;

    bool operator==(const CooccurrenceShape&) const = default;

    std::uint32_t relations() const { return positions ? 2 * window : 1; }
    /// 0 .. 2 * window - 1 for the offsets -window .. -1, 1 .. window.
    std::uint32_t relation_of(std::int32_t offset) const {
        if (!positions) return 0;
        const auto shifted = offset + static_cast<std::int32_t>(window);
        return static_cast<std::uint32_t>(offset < 0 ? shifted : shifted - 1);
    }
    /// The opposite of relation_of().
    std::int32_t offset_of(std::uint32_t relation) const {
        const auto shifted =
            static_cast<std::int32_t>(relation) - static_cast<std::int32_t>(window);
        return !positions ? 0 : shifted < 0 ? shifted : shifted + 1;
    }
    /// Features, of which a word has some: a neighbor in a relation is relation * words +
    /// neighbor. Below 2^32, or check_shape() fails.
    std::uint64_t columns() const { return std::uint64_t{relations()} * words; }
};

/// A column and a count, and what a weight of them takes later.
inline constexpr std::size_t kBytesOfTriple = 16;

/// Error: invalid_argument.
Status check_shape(const CooccurrenceShape& shape);

/// A row for each word: the features that it has, ascending, and how often. Symmetric: the count of
/// a feature (relation, neighbor) is the neighbor's of the opposite relation and the word. With
/// one relation for all, a pair at one place counts once in each of its words' rows, a word beside
/// itself twice in its own.
struct Cooccurrences {
    CooccurrenceShape shape;
    std::vector<std::uint64_t> begins;   // of each row; words + 1
    std::vector<std::uint32_t> columns;  // of all rows
    std::vector<std::uint32_t> counts;

    std::size_t stored() const { return columns.size(); }
};

/// Errors: invalid_argument for a bad shape, and for a stream whose words or positions are not as
/// they have to be (checked), or of 2^32 words or more; cancelled; out_of_memory; invalid_argument
/// when a count does not fit into 32 bits; memory_limit, for counts that with weights of their own,
/// kBytesOfTriple each, would take more than the answer limit. O(tokens * window) time on the
/// execution's threads. Memory: 28 bytes a word, 8 bytes a count of the answer, and within the
/// limit 4 bytes a token and up to 20 MiB a thread. With less the occurrences of fewer words, or
/// fewer columns, are counted at a time; each thread takes at least 320 KiB.
Result<Cooccurrences> count_cooccurrences(const CooccurrenceShape& shape, const TokenStream& tokens,
                                          std::size_t memory_limit, Execution& execution,
                                          std::size_t answer_limit = SIZE_MAX);

}  // namespace gputext
