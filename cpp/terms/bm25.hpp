// cpp/terms/bm25.hpp - BM25 weights of the terms of texts
//
// An item weighs a term
//
//     float(factor * (count / (count + k1 * (1 - b + b * length / average length)))),
//
// computed in double from left to right and rounded to float once. The factor is that of
// cpp/terms/tfidf.hpp, the length how many terms the item has, each as often as it has it. A query
// weighs a term by its count, so that an inner product is the query's BM25 score of an item.
// Statistics are of the items alone.
//
// Source: Robertson, Walker, 1994, Some simple effective approximations to the 2-Poisson model; as
// Lucene has it: the factor k1 + 1, which changes no order, is left out, and no factor is negative.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/terms/tfidf.hpp"

namespace gputext {

/// The weights of one collection's items.
class Bm25 {
public:
    /// `total_length` of so many items; parameters that are valid(). Their average length, where it
    /// is given, takes the place of that.
    Bm25(const TermParameters& parameters, std::int64_t total_length, std::size_t items);

    /// What a count is added to in an item of that length.
    double of_length(std::int64_t length) const;
    /// 0 for a count that is not above 0.
    static float weight(double factor, std::int32_t count, double of_length) {
        return count > 0 ? static_cast<float>(factor * (count / (count + of_length))) : 0;
    }

private:
    double k1_, b_, average_;
};

/// How many terms the row has, each as often as it has it; of type int32.
std::int64_t text_length(const Vectors& items, std::size_t row);
/// Of all rows. O(stored elements) time. Error: cancelled.
Result<std::int64_t> total_length(const Vectors& items, Execution& execution);

/// Items and factors for term_knn(), by any weighting. Points to the items, and to their weights
/// where these are not counts times factors: 4 bytes a stored element more.
class WeighedItems {
public:
    /// `factors`: of term_factors(), or those of a larger collection. O(stored elements). Errors:
    /// invalid_argument for parameters that are not valid(), and for bm25 of elements that are no
    /// counts; cancelled.
    Status set(const TermParameters& parameters, std::vector<double> factors, const Vectors& items,
               Execution& execution);

    const Vectors& items() const { return items_; }
    std::span<const double> factors() const { return factors_; }

private:
    Status weigh(const TermParameters& parameters, Execution& execution);

    Vectors items_;
    std::vector<double> factors_;
    std::unique_ptr<float[]> weights_;
};

}  // namespace gputext
