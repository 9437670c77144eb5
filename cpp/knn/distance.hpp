// cpp/knn/distance.hpp - definition of the distances of two vectors, to the bit
//
// Whoever computes a distance, on whatever device, gets the bits that this page defines; order and
// ties of every answer follow from them. a and b are rows of d elements, which are doubles exactly.
// Every operation is of IEEE 754's binary64, rounds to nearest, ties to even, and keeps numbers
// below the normal ones; products and sums are not fused.
//
// A sum over i of terms t[i], 0 <= i < d, is taken in sixteen partial sums. Partial sum j begins as
// +0 and adds t[j], t[j + 16], t[j + 32] ... in this order. Then partial sums j and j + 8 are added
// for j < 8, of these eight j and j + 4 for j < 4, then j and j + 2, then j and j + 1. An element
// that is zero in both rows changes nothing: a sparse row has the distances of the same dense row.
//
// euclidean      sqrt(S), S = sum of (a[i] - b[i])^2.
//                If S > 2^1000 or infinite: 2^600 * sqrt(sum of (a[i] * 2^-600 - b[i] * 2^-600)^2).
//                If S < 2^-900: 2^-600 * sqrt(sum of ((a[i] - b[i]) * 2^600)^2).
//                So neither overflow nor underflow of a square is ever seen; a distance beyond the
//                largest double is infinity.
// manhattan      sum of |a[i] - b[i]|; infinity beyond the largest double.
// inner_product  0 - sum of a[i] * b[i], so that less is nearer. If that sum is not finite: the sum
//                of (a[i] * 2^-600) * (b[i] * 2^-600), times 2^600 and again times 2^600.
// cosine         1 - similarity. A row's square is the sum of a[i] * a[i]; where it is below 2^-300
//                or above 2^300, the row is first multiplied by the power of two that brings its
//                largest magnitude into [1, 2). The similarity is the sum of a[i] * b[i] divided by
//                sqrt(square of a * square of b), and 1 or -1 where it were beyond them. A row of
//                zeros has neither similarity nor distance to any row.
//
// A row's distance to itself is exactly 0 (but for inner_product), as sqrt(x * x) is x. Elements of
// any type but float64 never come near the powers of two above: their distances need no second look
// except that S = 0 is sqrt(0) either way.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/simd.hpp"
#include "cpp/base/vectors.hpp"

namespace gputext {

enum class Metric : std::uint8_t { euclidean, cosine, inner_product, manhattan };

/// Distances from one row of `queries` to rows of `items`: both dense or both sparse, of the same
/// dimensions, checked by largest_magnitude(). Keeps a query as doubles: 8 bytes a dimension.
class Distances {
public:
    Distances(Metric metric, const Vectors& queries, const Vectors& items, Simd simd);

    /// The row that distances are taken from. O(dimensions), or O(stored elements) when sparse.
    void set_query(std::size_t row);

    /// NaN where there is none. O(dimensions), or O(stored elements) when sparse.
    double operator()(std::size_t item) const;

    /// Distance to an item, or infinity, at less cost, where it is certainly above `limit`.
    double unless_beyond(double limit, std::size_t item) const;

    /// NaN where there is none. Metric cosine only.
    double similarity(std::size_t item) const;

    /// The two sums that a metric's definition takes over a query and an item.
    struct Sums {
        double terms;   // the metric's terms; cosine: the products
        double square;  // cosine: the item's square
    };
    using DenseSums = Sums (*)(const double* query, const std::byte* row, std::size_t dimensions,
                               bool readable_behind);

private:
    Sums dense_sums(std::size_t item) const;
    Sums sparse_sums(std::size_t item) const;
    double sparse_merged(std::size_t item) const;
    double of_sums(const Sums& sums, std::size_t item) const;
    double cosine_of(const Sums& sums, std::size_t item) const;
    double second_look(double sum, std::size_t item) const;

    Metric metric_;
    const Vectors& queries_;
    const Vectors& items_;
    bool wide_;  // elements may need the definition's powers of two
    DenseSums dense_sums_ = nullptr;
    std::size_t query_row_ = 0;
    std::vector<double> query_;  // the row; cosine: scaled
    double query_square_ = 0;    // cosine; sparse: of euclidean, too
    double query_sum_ = 0;       // sparse: of magnitudes
};

/// Distance of two matrices of one row each: both dense or both sparse, of equal dimensions,
/// checked by largest_magnitude(). NaN where there is none: cosine of a row of zeros.
/// O(dimensions).
double distance(Metric metric, const Vectors& a, const Vectors& b);

/// Renumbers the columns of sparse vectors of many dimensions such that they are as few as may be,
/// and all distances have the same bits: columns keep their order, which rows are merged by, and
/// their remainder by sixteen. Leaves other vectors as they are.
class FewerColumns {
public:
    static constexpr std::size_t few_dimensions = std::size_t{1} << 16;

    /// O(stored elements * log) time. Error: cancelled.
    Status set(const Vectors& queries, const Vectors& items, Stop stop);
    const Vectors& queries() const { return queries_; }
    const Vectors& items() const { return items_; }

private:
    std::vector<std::uint32_t> query_columns_, item_columns_;
    Vectors queries_, items_;
};

}  // namespace gputext
