// cpp/thesaurus/detail/feature_sums.hpp - inner loops of cpp/thesaurus/word_similarity.cpp, for
// each instruction set
//
// Sums over shared features, of one word with many: either of pairs a + b, in 32 bits, or of
// products a * b, in doubles that are whole numbers below 2^53. Both are exact, so that the order
// and the instructions make no difference.
//
// Features that many words of a tile have are dense: a cell for every word, of kBlockWords words
// one behind the other. A word's sums with a block are kept in registers while its dense features
// go by.
//
//     pairs     a cell is the weight (low half) and whether there is one, 1 or 0 (high half), both
//               of 16 bits and signed; a term's factor is 1 or 0, and the word's weight. Their
//               scalar product, one instruction, is a + b for words with the feature, else 0.
//     products  a cell is the weight or 0, the factor the word's weight.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/thesaurus/feature_weights.hpp"

namespace gputext {

inline constexpr std::size_t kBlockWords = 128;

/// A dense feature of a word.
struct DenseTerm {
    std::uint32_t column;  // of the block
    std::uint32_t factor;
};

/// A cell or factor for pairs; of weights up to kMostPairWeight.
inline constexpr std::uint32_t kMostPairWeight = 32767;
inline std::uint32_t pair_cell(std::uint32_t weight, bool has) {
    return weight | std::uint32_t{has} << 16;
}
inline std::uint32_t pair_factor(bool has, std::uint32_t weight) {
    return std::uint32_t{has} | weight << 16;
}

template <class Sum>
struct SumKernels {
    /// Sets kBlockWords sums to those over the terms.
    void (*add_dense)(const std::uint32_t* cells, const DenseTerm* terms, std::size_t count,
                      Sum* sums);

    /// Bit mask of the words among 64 whose sum is at least the lesser of `gate` and their own
    /// gate, times the sum of both sizes or, for `passing_product`, their product. In float.
    using Passing = std::uint64_t (*)(const Sum* sums, const float* sizes, const float* gates,
                                      float size, float gate);
    Passing passing_sum, passing_product;

    /// One in so many words of a tile with a feature makes it dense.
    std::size_t dense_part;
};

/// `vnni`: with AVX-512's dot products, if there are any.
SumKernels<std::uint32_t> pair_kernels(Simd simd, bool vnni = true);
SumKernels<double> product_kernels(Simd simd);

// ---- Inverted index over a tile of words: for each feature the words that have it ----
//
// Dense features, which many of the words have, are cells as above, in blocks of kBlockWords
// words; all others are lists of
// words. A tile has so few words that sums with all of them stay in a processor's first cache.

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
