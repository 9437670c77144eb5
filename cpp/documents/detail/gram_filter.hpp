// cpp/documents/detail/gram_filter.hpp - a lower bound of edit distances: one document beside 512
// others at once
//
// An edit of a document touches at most q of its q-grams, and these lie side by side. A gram that
// no edit touches occurs in the other document, too, moved by the insertions and deletions before
// it. So grams that do not occur there, none within q places of another one, each need an edit of
// their own. They are chosen from the document's end, which is optimal. (The location-based
// mismatch filter of Xiao, Wang and Lin, Ed-Join, 2008; here with places, and bit-sliced.)
//
// Within k edits a gram's distance from the middle of its document changes by at most k / 2, as
// insertions and deletions differ by the difference of the lengths. A tile has for each block of
// places and each hash of a gram a row of bits: which of its documents have such a gram within
// reach of that block. Hashing can only make more grams occur: no pair is lost.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/documents/documents.hpp"

namespace gputext {

/// Documents as strings with one byte a character. Characters are folded into bytes, which can only
/// make documents more alike: a distance of folded documents is a lower bound.
class FoldedDocuments {
public:
    /// `lengths` holds each document's number of characters. Memory: a byte for each character of
    /// documents with characters of several bytes. The documents must live as long as this.
    /// Errors: cancelled, out_of_memory.
    Status fold(const Documents& documents, std::span<const std::uint32_t> lengths,
                Execution& execution);

    Bytes operator[](std::size_t i) const { return {views_[i].begin, views_[i].size}; }
    /// Whether folding changed nothing, so that distances are the documents' own.
    bool is_narrow(std::size_t i) const { return views_[i].narrow; }

private:
    struct View {
        const std::uint8_t* begin;
        std::uint32_t size;
        bool narrow;
    };
    std::vector<View> views_;
    std::vector<std::uint8_t> folded_;
};

/// Up to 512 documents, with a table of the grams that they have.
class GramTile {
public:
    static constexpr std::size_t most_columns = 512;
    static constexpr unsigned shortest_gram = 2;
    static constexpr unsigned longest_gram = 6;
    using Mask = std::array<std::uint64_t, most_columns / 64>;  // a bit for each column

    explicit GramTile(Simd simd) : simd_(simd) {}

    /// Makes the table: documents of at most `longest` characters, at most 512, to be compared with
    /// documents no longer than that, with at most `most_edits` edits. The table takes at most
    /// `memory` bytes, or the 64 KB that it needs; while it is made, 2 bytes a character of the
    /// columns more are taken, and then 4 bytes a character of the longest row. False if stopped.
    bool build(std::span<const Bytes> columns, unsigned gram, std::size_t longest,
               std::size_t most_edits, std::size_t memory, Stop stop);

    /// Those of the `wanted` columns that may be within `edits` edits of the row; `edits` and the
    /// row's length are at most build()'s. Also counts the least edits of the row's suffixes. An
    /// empty mask if stopped.
    Mask may_be_within(Bytes row, std::size_t edits, const Mask& wanted, Stop stop);

    /// After may_be_within, for a column of its answer: edits that the row's characters from about
    /// `from` on, and no earlier ones, need at least. Falls as `from` grows.
    std::size_t least_edits_from(std::size_t column, std::size_t from) const;

    /// After may_be_within, for some columns of its answer: the least edits that the whole row
    /// needs beside any of them; SIZE_MAX for no columns.
    std::size_t least_edits_of(const Mask& columns) const;

    /// Sum over the columns of the least edits of the whole row.
    std::uint64_t sum_of_least_edits(Bytes row, Stop stop);

private:
    struct Walk;
    struct Walker;

    bool compute_bins(Bytes document, std::uint16_t* bins, Stop stop) const;

    Simd simd_;
    unsigned gram_ = 2;
    std::size_t columns_ = 0;
    std::size_t row_words_ = 8;  // of the table: 1 for up to 64 columns
    unsigned bin_bits_ = 0;
    unsigned block_bits_ = 0;  // a block's width in half characters
    std::size_t blocks_ = 0;
    std::size_t longest_ = 0;
    std::vector<std::uint64_t> table_words_;
    std::uint64_t* table_ = nullptr;         // [block][bin][column / 64], and a row of ones
    std::vector<std::uint32_t> row_places_;  // [place] for the row: numbers of rows of the table
    std::size_t row_grams_ = 0;
    // Counts of suffixes: planes of bits, written every so many places from the row's end.
    std::vector<std::uint64_t> marks_;  // [mark][plane][column / 64]
    std::size_t mark_step_ = 0;
    std::size_t planes_ = 0;
    std::uint64_t first_count_ = 0;
    std::size_t marks_written_ = 0;
};

}  // namespace gputext
