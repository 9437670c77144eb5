// cpp/documents/detail/exact_search_space.hpp - the pairs of documents that an exact search looks
// at
//
// A search puts the documents in the order of length, and compares each of them, a row, with those
// behind it, its columns. Between two sides (cpp/documents/distinct_documents.hpp) the rows are the
// documents of one side and the columns those of the other one, each in the order of length; then a
// column may be shorter than its row. Rows and columns are named by their places in that order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/documents/detail/candidate_pairs.hpp"
#include "cpp/documents/detail/exact_search.hpp"
#include "cpp/documents/detail/gram_filter.hpp"
#include "cpp/documents/detail/gram_index.hpp"
#include "cpp/documents/edit_distance.hpp"

namespace gputext {

/// What an exact search is called with.
struct SearchInput {
    const NearDuplicateParameters& parameters;
    const DistinctDocuments& documents;
    const PairPart& part;
    Execution& execution;
    WantedPairs& wanted;
};

class SearchSpace : public SearchInput {
public:
    using Range = PlaceRange;
    using Place = PlacedDocument;

    /// What the input refers to must live as long as this.
    explicit SearchSpace(const SearchInput& input)
        : SearchInput(input), budget_(parameters.memory_limit), verifiers_(execution.threads()) {}

    /// Folds and sorts the documents. O(characters). Errors: cancelled, out_of_memory.
    Status prepare();

    // ---- Rows and columns ----

    std::span<const Place> rows() const { return rows_; }
    std::span<const Place> columns() const { return columns_; }
    bool between_sides() const { return !documents.sides.empty(); }
    std::size_t row_length(std::size_t row) const { return rows_[row].size; }
    std::size_t length(std::size_t column) const { return columns_[column].size; }
    Bytes folded_row(std::size_t row) const { return folded(rows_[row]); }
    Bytes folded_column(std::size_t column) const { return folded(columns_[column]); }

    /// Whether the part has the row's pairs.
    bool is_row(std::size_t row) const {
        return part_rows_.empty() || part_rows_[rows_[row].document] != 0;
    }
    /// Whether it is a pair, and wanted at this moment.
    bool are_pair(std::size_t row, std::size_t column) const {
        const std::uint32_t first = rows_[row].document, second = columns_[column].document;
        return gputext::are_pair(documents.sides, first, second) && wanted.wants(first, second);
    }
    /// Whether folding has left both documents as they are.
    bool are_narrow(std::size_t row, std::size_t column) const {
        return folded_.is_narrow(rows_[row].document) &&
               folded_.is_narrow(columns_[column].document);
    }
    std::size_t most_edits(std::size_t row, std::size_t column) const {
        return most_edits_within(parameters.threshold, row_length(row) + length(column));
    }
    /// Whether a document is too long to be near another one. This changes once along the order of
    /// length, since a threshold is below 1.
    bool too_long(std::size_t longer, std::size_t shorter) const {
        return longer > shorter &&
               longer - shorter > most_edits_within(parameters.threshold, longer + shorter);
    }

    /// The first column of at least this length.
    std::size_t first_column_of(std::size_t length) const;
    /// The rows that may be near some of these columns, at least one, and perhaps some that may
    /// not.
    Range rows_beside(Range columns) const;
    /// Those of the columns whose pair with the row is looked at and whose length allows the rate.
    Range columns_beside(std::size_t row, Range columns) const;
    /// The rows beside the columns, as an index of these takes them.
    ProbeRows probe_rows_beside(Range columns) const {
        return {rows_, rows_beside(columns), between_sides()};
    }

    /// Some of the rows beside the columns, evenly spaced.
    std::vector<std::size_t> sample_rows(Range columns, std::size_t most) const;
    /// The sum over all rows beside the columns, extrapolated from some of them.
    double sum_over_rows(Range columns, const std::function<double(std::size_t)>& of_row) const;

    // ---- Verification, by several threads ----

    /// Adds a pair at this distance, if it is wanted. Error: memory_limit.
    Status add(std::size_t row, std::size_t column, std::size_t distance, unsigned worker);
    /// Computes the pair's distance, and adds it if that is near. Errors: cancelled,
    /// memory_limit, out_of_memory.
    Status verify(std::size_t row, std::size_t column, unsigned worker);

    /// Seconds that pairs took that were verified and are not near. By what was counted, and not by
    /// a clock: a search does the same on a busy machine.
    double far_seconds() const;
    std::uint64_t verified() const;

    /// How many pairs each thread has added, and a return to that.
    std::vector<std::size_t> added() const;
    void drop_added_since(std::span<const std::size_t> added);
    /// Moves all pairs into `pairs`.
    void take(std::vector<NearPair>& pairs);

private:
    /// What a thread verifies with, and has found.
    struct Verifier {
        EditDistance edit_distance;
        std::vector<NearPair> found;
        std::size_t room = 0;  // pairs whose memory has been taken from the budget
        std::uint64_t verified = 0;
        std::uint64_t far_characters = 0, far_steps = 0;  // of pairs that are not near
    };

    static Bytes folded(const Place& place) { return {place.symbols, place.size}; }
    /// The documents on the side, or all without sides, in the order of length. False if stopped.
    bool sort_side(std::uint8_t side, std::vector<Place>& places) const;

    MemoryBudget budget_;
    FoldedDocuments folded_;
    std::vector<std::uint8_t> part_rows_;  // by document: whether it is a row of the part; or none
    std::vector<Place> columns_, other_rows_;  // the latter between two sides
    std::span<const Place> rows_;              // these, or the columns
    std::vector<Verifier> verifiers_;
};

}  // namespace gputext
