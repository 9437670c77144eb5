// cpp/knn/float_bound.hpp - how far distances in single precision are from exact ones
//
// Others compute the distances of cpp/knn/distance.hpp in single precision: each term from operands
// that are floats exactly, and the sum of d terms in any order, in any number of partial sums, with
// products fused or not. Whoever wants the items that are nearest by such a computation searches
// exactly, and needs to know how near an item that the search has left out may look to the other.
//
// Proof. Let u = 2^-24 and g(n) = n u / (1 - n u). A sum of d terms in any order, whose terms have
// themselves been rounded up to three times, differs from the exact sum S by at most
// g(d + 2) * (sum of the terms' magnitudes), and by at most 2^-126 for each operation whose result
// is below the normal numbers, be it rounded or flushed to zero: additions are exact there, so that
// these are d products or, flushed, 2 d operations. g(d + 4) leaves room for what is done in double
// precision: the exact distance itself, square roots and quotients. What follows holds while no
// float overflows: squares of all norms are at most 2^100, and those that are not zero at least
// 2^-80, so that the 2 d 2^-126 of underflow are below u of them for d <= 2^14.
//
// euclidean      S is a sum of squares, and so at least S (1 - g) - 2 d 2^-126 in single precision.
// manhattan      The same of S itself.
// inner_product  The terms' magnitudes sum up to at most |a| |b| (Cauchy and Schwarz): the sum is
//                within g |a| |b| + 2 d 2^-126 of the exact one.
// cosine         Divided by |a| |b|, the sum of products is within g + u of the similarity s. Each
//                square of a norm is within a factor 1 +- (g + u), and so is the root of their
//                product. With e = g(d + 6) the similarity is at most (s + e) / (1 - e) where s + e
//                is not negative, and (s + e) / (1 + e) elsewhere.

#pragma once

#include <cstddef>
#include <limits>
#include <optional>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext {

/// The squares of rows' norms: the least that is not zero, and the largest.
struct NormRange {
    double least = std::numeric_limits<double>::infinity();
    double largest = 0;

    void add(double square) {
        if (square > 0 && square < least) least = square;
        if (square > largest) largest = square;
    }
    /// Whether the proof holds for all rows.
    bool fits() const { return largest <= 0x1p100 && (largest == 0 || least >= 0x1p-80); }
};

/// Of dense rows with finite elements. O(elements), on the execution's threads. Errors: cancelled;
/// unavailable.
Result<NormRange> norm_range(const Vectors& vectors, Execution& execution);

/// The square of one dense row's norm.
double norm_square(const Vectors& vectors, std::size_t row);

/// The least distance that single precision gives for an item whose exact distance is at least
/// `exact`. None where the proof does not hold: norms out of range, more than 2^14 dimensions.
std::optional<double> least_in_single_precision(Metric metric, std::size_t dimensions, double exact,
                                                double query_square, const NormRange& items);

}  // namespace gputext
