// cpp/terms/detail/matrix.hpp - sparse rows of weights of terms, and their distances

#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext {

/// A sum as cpp/knn/distance.hpp defines it.
class ColumnSum {
public:
    void add(std::uint32_t column, double term) { partial_[column % 16] += term; }
    double operator()() const {
        std::array<double, 16> sums = partial_;
        for (std::size_t half = 8; half > 0; half /= 2)
            for (std::size_t j = 0; j < half; ++j) sums[j] += sums[j + half];
        return sums[0];
    }

private:
    std::array<double, 16> partial_{};
};

/// A view of rows of elements, float32 or int32, and of the terms' factors.
class TermMatrix {
public:
    TermMatrix(const Vectors& vectors, std::span<const double> factors)
        : vectors_(vectors), factors_(factors) {}

    std::size_t rows() const { return vectors_.rows; }
    std::size_t terms() const { return factors_.size(); }
    std::span<const double> factors() const { return factors_; }
    std::size_t stored(std::size_t row) const { return vectors_.stored(row); }

    /// The stored element at a position, as in Vectors.
    double element(std::size_t i) const {
        return vectors_.type == ElementType::int32
                   ? static_cast<double>(static_cast<const std::int32_t*>(vectors_.elements)[i])
                   : static_cast<double>(static_cast<const float*>(vectors_.elements)[i]);
    }

    /// Calls function(term, weight) for the row's weights that are not 0, in the order of terms.
    template <class Function>
    void each(std::size_t row, Function&& function) const {
        const std::size_t begin = vectors_.begin(row), end = begin + vectors_.stored(row);
        for (std::size_t i = begin; i < end; ++i) {
            const std::uint32_t term = vectors_.columns[i];
            const double weight = element(i) * factors_[term];
            if (weight != 0) function(term, weight);
        }
    }

    /// The sum of the squares of the row's weights.
    double square(std::size_t row) const {
        ColumnSum sum;
        each(row, [&](std::uint32_t term, double weight) { sum.add(term, weight * weight); });
        return sum();
    }

private:
    Vectors vectors_;
    std::span<const double> factors_;
};

/// One query's weights, to be found by term: a hash table, which stays in the cache where a row of
/// as many numbers as there are terms would not.
/// In a HashTable, whose slots hold both a term and its weight, a plain search takes about 15 %
/// longer.
class QueryTerms {
public:
    /// Metric: cosine or inner_product.
    explicit QueryTerms(Metric metric) : metric_(metric) {}

    /// O(stored elements).
    void set(const TermMatrix& queries, std::size_t row);

    /// The query's square.
    double square() const { return square_; }
    /// 0 for a term that the query does not have.
    double weight(std::uint32_t term) const {
        for (std::size_t at = slot(term); weights_[at] != 0; at = (at + 1) & mask_)
            if (terms_[at] == term) return weights_[at];
        return 0;
    }

    /// The distance to an item, given the square of its weights; NaN where they share no term.
    /// O(the item's stored elements).
    double distance(const TermMatrix& items, std::size_t item, double item_square) const {
        ColumnSum products;
        bool shared = false;
        items.each(item, [&](std::uint32_t term, double item_weight) {
            const double query_weight = weight(term);
            if (query_weight == 0) return;
            products.add(term, query_weight * item_weight);
            shared = true;
        });
        return shared ? distance(products, item_square) : std::nan("");
    }

    /// Distance from the sum of products over the terms that both rows share, at least one.
    double distance(const ColumnSum& products, double item_square) const {
        if (metric_ == Metric::inner_product) return 0 - products();
        const double cosine = products() / std::sqrt(square_ * item_square);
        return 1 - (cosine < -1 ? -1 : cosine > 1 ? 1 : cosine);
    }

private:
    std::size_t slot(std::uint32_t term) const { return (term * 0x9e3779b97f4a7c15u) >> shift_; }

    Metric metric_;
    double square_ = 0;
    std::vector<std::uint32_t> terms_;
    std::vector<double> weights_;  // 0 where a slot is free
    std::size_t mask_ = 0;
    unsigned shift_ = 0;
};

// ---- Counts, for each column of a sparse matrix, the rows that have it ----

/// For each column in how many of these rows, of type float32 or int32, it is not zero. Advances
/// the execution by a step a row. O(stored elements + columns * threads) time, 4 bytes a column and
/// thread; fewer threads where these were more than 256 MiB. Error: cancelled.
Result<std::vector<std::uint32_t>> column_counts(const Vectors& vectors,
                                                 std::span<const std::uint32_t> rows,
                                                 Execution& execution);

}  // namespace gputext
