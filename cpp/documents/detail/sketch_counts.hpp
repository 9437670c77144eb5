// cpp/documents/detail/sketch_counts.hpp - what a document's sketch is made of: its length, a hash,
// and counts of its characters and bigrams
//
// All of it goes into indexes on disk, and so does not depend on the machine or its instruction
// set. (The hash reads words in the byte order of the machine, as PostgreSQL's files have it.)

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/documents/sketch_model.hpp"

namespace gputext {

/// Counts of the document that was read last. Keeps its memory between documents.
class SketchCounts {
public:
    SketchCounts();

    /// O(size). The document has less than 2^31 characters. Returns false, early, when `stop` says
    /// so.
    bool count(Bytes document, const CharacterLengths& lengths, Stop stop);

    std::uint32_t length() const { return length_; }  // in characters
    std::uint32_t hash() const { return hash_; }      // of the document's bytes
    /// The count of each letter cell.
    std::span<const std::uint32_t> letters() const { return letters_; }
    /// Of each bigram cell in the first half of the document, and then of each in the second half,
    /// to which a bigram belongs that does not begin before the middle.
    std::span<const std::uint32_t> grams() const { return grams_; }

private:
    using GramTable = std::array<std::uint32_t, kGramCells>;

    void count_block(Bytes folded, bool continued);
    void count_grams(Bytes folded, unsigned half);
    void clear();
    void add_up();

    std::uint32_t length_ = 0;
    std::uint32_t hash_ = 0;
    std::uint32_t counted_ = 0;  // characters so far
    std::array<std::uint32_t, kLetterCells> letters_;
    std::array<std::uint32_t, 2 * kGramCells> grams_;

    // Neighboring characters are counted in different tables: a counter that has just been written
    // takes a while to be read again.
    static constexpr std::size_t tables = 2;
    std::array<std::array<std::uint32_t, kLetterCells>, tables> letter_counts_;
    std::array<std::array<GramTable, tables>, 2> gram_counts_;  // by half
    std::vector<std::uint8_t> folded_;
};

/// Adds up the counts of cells by the bins of a part of a sketch. Grams of both halves are added up
/// where the part does not tell them apart.
void add_in_bins(std::span<const std::uint32_t> cells, const SketchPart& part,
                 std::span<std::uint32_t> bins);

}  // namespace gputext
