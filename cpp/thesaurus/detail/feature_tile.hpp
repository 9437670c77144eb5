// cpp/thesaurus/detail/feature_tile.hpp - inverted index over a tile of words: for each feature the
// words that have it
//
// Dense features, which many of the words have, are kept as cells of
// cpp/thesaurus/detail/feature_sums.hpp, in blocks of kBlockWords words; all others as lists of
// words. A tile has so few words that sums with all of them stay in a processor's first cache.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/thesaurus/detail/feature_sums.hpp"
#include "cpp/thesaurus/feature_weights.hpp"

namespace gputext {

class WordTile {
public:
    static constexpr std::uint32_t kMostWords = 4096;

    struct Choice {
        bool products = false;       // which cells
        bool ones = false;           // instead of all weights
        std::size_t dense_part = 0;  // one in so many words with a feature makes it dense; 0: none
        std::size_t dense_memory = 0;
    };

    /// Indexes the words from `begin` to `end`, at most kMostWords, with fewer than 2^32 features.
    /// Reuses the memory of the previous tile. O(their features + all columns) time.
    /// Error: cancelled.
    Status build(const WordFeatures& features, const Choice& choice, std::uint32_t begin,
                 std::uint32_t end, Execution& execution);

    std::uint32_t begin() const { return begin_; }
    std::uint32_t end() const { return end_; }
    std::uint32_t size() const { return end_ - begin_; }

    /// Postings of a feature that is not dense: for each word that has it, the word's number in the
    /// tile (low half) and the weight (high half).
    std::span<const std::uint32_t> list(std::uint32_t column) const {
        return {postings_.data() + list_begins_[column],
                postings_.data() + list_begins_[column + 1]};
    }
    void prefetch(std::uint32_t column) const { __builtin_prefetch(&list_begins_[column]); }

    /// Columns of cells: first, first + 1, .. for a dense feature. With pairs, the first one has
    /// the weights up to kMostPairWeight, others what is above, without saying which words have it.
    struct Dense {
        std::uint32_t first, columns;
    };
    bool any_dense() const { return dense_columns_ > 0; }
    /// Null for a feature that is not dense.
    const Dense* dense(std::uint32_t column) const {
        return dense_of_[column] == 0 ? nullptr : &dense_[dense_of_[column] - 1];
    }
    const std::uint32_t* block(std::size_t block) const {
        return cells_.data() + block * dense_columns_ * kBlockWords;
    }

private:
    struct ColumnRange {
        std::uint64_t begin, end;
        std::uint64_t postings = 0;
        std::vector<std::uint32_t> frequent;  // columns that may be dense
    };

    template <class Take>
    Status each_of(const WordFeatures& features, const ColumnRange& range, Stop stop,
                   Take&& take) const;
    Status count(const WordFeatures& features, const Choice& choice, ColumnRange& range, Stop stop);
    void choose_dense(const Choice& choice, std::span<ColumnRange> ranges);
    Status fill_lists(const WordFeatures& features, const Choice& choice, const ColumnRange& range,
                      Stop stop);
    Status fill_block(const WordFeatures& features, const Choice& choice, std::size_t block,
                      Stop stop);

    std::uint32_t begin_ = 0, end_ = 0;
    std::vector<std::uint32_t> list_begins_;  // by column
    std::vector<std::uint32_t> postings_;
    std::vector<std::uint16_t> dense_of_;  // by column: 1 + the number of a dense feature, or 0
    std::vector<Dense> dense_;
    std::size_t dense_columns_ = 0;
    std::vector<std::uint32_t> cells_;
};

}  // namespace gputext
