// cpp/documents/detail/sketch_counts.hpp - what a document's sketch is made of: its length, a hash,
// and counts of its characters and bigrams
//
// All of it goes into indexes on disk, and so does not depend on the machine or its instruction
// set. (The hash reads words in the byte order of the machine, as PostgreSQL's files have it.)

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/documents/sketch_model.hpp"

namespace gputext {

/// Counts of the document that was read last. Keeps its memory between documents.
class SketchCounts {
public:
    /// In the bins of a model.
    explicit SketchCounts(const SketchModel& model);
    /// Of each cell by itself.
    SketchCounts();

    /// O(size). The document has less than 2^31 characters. Returns false, early, when `stop` says
    /// so.
    bool count(Bytes document, const CharacterLengths& lengths, Stop stop);

    std::uint32_t length() const { return length_; }  // in characters
    std::uint32_t hash() const { return hash_; }      // of the document's bytes
    const std::vector<std::uint32_t>& letters() const { return letters_; }
    const std::vector<std::uint32_t>& grams() const { return grams_; }

private:
    /// The bins of the cells, and how many bins there are.
    struct Bins {
        std::vector<std::uint16_t> of_cells;
        std::size_t count;
    };
    SketchCounts(Bins letters, Bins grams);

    void count_bytes(Bytes folded, bool continued);
    void clear();
    void add_up();

    std::uint32_t length_ = 0;
    std::uint32_t hash_ = 0;
    std::vector<std::uint16_t> letter_bins_, gram_bins_;  // of the cells
    std::vector<std::uint32_t> letters_, grams_;

    // Neighbouring characters are counted in different tables: a counter that has just been written
    // takes a while to be read again.
    static constexpr std::size_t letter_tables = 2, gram_tables = 2;
    using GramTables = std::array<std::uint32_t*, gram_tables>;
    std::array<std::array<std::uint32_t, kLetterCells>, letter_tables> letter_counts_;
    std::vector<std::uint32_t> gram_counts_;
    std::vector<std::uint8_t> folded_;
};

}  // namespace gputext
