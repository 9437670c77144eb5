// cpp/terms/detail/filter.hpp - filter scores of a query and all items of a tile, in float
//
// Scores decide which items are left out. A score is the cosine but for an error that is proven
// below; who scores less than the k-th best by more than two such errors is no neighbor. For inner
// products each item's square is that of the longest (cpp/terms/detail/inverted_index.hpp): then
// "cosines" are inner products by a common measure, and what follows is true of them, too.
//
// The bound. Let a and b be the weights of query and item, each divided by the root of its square,
// so that the sum of |a b| over the terms that they share is at most 1, and u = 2^-24. A weight is
// stored with a relative error of u, or is raised to 2^-40; the products of m terms and their sum,
// in whatever order, have a relative error of (m + 2) u / (1 - (m + 2) u) each. So the score lies
// within R * sum |a b| + A of the cosine, where R = (m + 8) u / (1 - (m + 8) u) for the m terms of
// the query, and A = m * 2^-38 + the query's dense weights * the error of a dense unit. A also
// covers the rounding of the distance in double precision. Where no weight is negative, sum |a b|
// is the cosine itself.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "cpp/base/simd.hpp"
#include "cpp/terms/detail/inverted_index.hpp"
#include "cpp/terms/detail/matrix.hpp"

namespace gputext {

/// What a score says of a cosine.
class ScoreBound {
public:
    ScoreBound() = default;
    /// `measure`: what cosines are inner products by; 0 for the metric cosine.
    ScoreBound(std::size_t terms, double dense_weights, bool negative, double measure);

    /// The least score of an item whose cosine is at least as high as that of an item of this score
    /// may be.
    float least_beside(float score) const { return score_of(cosine_at_least(score)); }
    /// The least score of an item at most this far.
    float least_within(double distance) const;

private:
    double cosine_at_least(double score) const;
    float score_of(double cosine) const;

    double relative_ = 0, absolute_ = 0;
    double measure_ = 0;
    bool negative_ = false;
};

/// A query as the index has its terms.
class IndexedQuery {
public:
    /// For the tiles from `first_tile` on, in their order.
    void set(const TermMatrix& queries, std::size_t row, double square, const InvertedIndex& index,
             std::size_t first_tile, bool negative);

    const ScoreBound& bound() const { return bound_; }
    /// Whether it shares no term with any item.
    bool empty() const { return dense_.empty() && frequent_.empty() && rare_.empty(); }

private:
    friend class TermFilter;
    struct Term {
        std::uint32_t number;
        float weight;
    };
    struct RareTerm {
        const InvertedIndex::Posting *at, *end;  // advances with the tiles
        float weight;
    };
    std::vector<std::uint32_t> dense_;
    std::vector<float> dense_weights_;  // times the unit
    std::vector<Term> frequent_;
    std::vector<RareTerm> rare_;
    ScoreBound bound_;
};

/// An item of the index and its score.
struct ScoredItem {
    float score;
    std::uint32_t position;
};

/// One thread's scores.
class TermFilter {
public:
    TermFilter(const InvertedIndex& index, bool negative, Simd simd);

    /// Scores a tile's items. A query's tiles ascend from the first that it was set for.
    void score(IndexedQuery& query, std::size_t tile);

    /// Visits the tile's items from row `from` on that share a term with the query: calls
    /// keep({score, position}) for each that scores at least `least`; keep() returns the least
    /// score from there on.
    template <class Keep>
    void gate(std::size_t tile, float least, Keep&& keep) const {
        const std::size_t rows = index_.rows_of(tile), first = tile * index_.tile_rows();
        for (std::size_t begin = 0; begin < rows; begin += step) {
            if (none_(scores_.get() + begin, least)) continue;
            for (std::size_t row = begin; row < std::min(rows, begin + step); ++row) {
                const float score = scores_[row];
                if (score >= least && touched(score))
                    least = keep(ScoredItem{score, static_cast<std::uint32_t>(first + row)});
            }
        }
    }

    static constexpr std::size_t step = InvertedIndex::row_step;
    using AddColumns = void (*)(const std::uint16_t* const* columns, const float* weights,
                                std::size_t count, std::size_t rows, float* scores);
    using None = bool (*)(const float* scores, float least);

private:
    /// Whether a score is a sum of at least one product. These are above 0 where no weight is
    /// negative; else sums begin as - 0, which no sum of numbers that are not 0 is.
    bool touched(float score) const;

    const InvertedIndex& index_;
    bool negative_;
    struct Free {
        void operator()(float* scores) const { ::operator delete[](scores, std::align_val_t(64)); }
    };
    std::unique_ptr<float[], Free> scores_;
    std::vector<const std::uint16_t*> columns_;
    std::vector<InvertedIndex::List> lists_;
    AddColumns add_columns_;
    None none_;
};

}  // namespace gputext
