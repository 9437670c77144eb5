// cpp/knn/detail/filter_space.hpp - maps distances to filter scores, with a proven error bound
//
// Rows are moved and scaled so that a product or a sum of magnitudes of low precision orders them
// about as their distances do (cpp/knn/detail/distance_filter.hpp). With a' and b' the rows after
// that, in exact arithmetic, and t a number that grows strictly with the distance D of a and b:
//
//   euclidean      a' = (a - c) s, b' = (b - c) s   t = ((s D)^2 - |a'|^2) / 2 = |b'|^2 / 2 - a' b'
//   cosine         a' = a / |a|, b' = b / |b|       t = D - 1                  = -a' b'
//   inner_product  a' = a s_q, b' = b s_i           t = s_q s_i D              = -a' b'
//   manhattan      a' = (a - c) s, b' = (b - c) s   t = s D                    = sum |a' - b'|
//
// c is about the middle of the items: it makes norms small, on which the bound depends, and changes
// no distance. s, s_q, s_i are powers of two that bring the largest element near 1. The filter gets
// a~ and b~, which are a' and b' in T, and computes v, the sum of d terms above with its offset, in
// S (unit roundoff u): S is T for float (u = 2^-24) and double (2^-53), and float for bfloat16,
// whose products are exact there. To the t of the distance *as cpp/knn/distance.hpp defines it* to
// the bit, v is related by
//
//   v (1 - g) - r <= t <= v (1 + g) + r
//
// product metrics: g = 0, and with norms N, residuals R = |a' - a~|, offset H = |b'|^2 / 2 or 0
//   r = G (H + Na Nb)           d + 3 roundings of the sum and the offset (Higham, Accuracy and
//                               Stability of Numerical Algorithms, 3.1), G = (d + 4) u / (1 - ...).
//                               It holds at any order: of d products and an offset, none goes
//                               through more than d additions that round
//     + Ra Nb + Na Rb           |a' b' - a~ b~| <= |a' - a~| |b'| + |a~| |b' - b~|
//     + E (Na + Nb)^2           the distance's own error in double precision, of at most
//                               (d / 16 + 10) 2^-53 of (s D)^2 / 2 <= (Na + Nb)^2 / 2, of 1 for
//                               cosine, of Na Nb for products; E = (d / 16 + 20) 2^-52
//     + tiny                    underflow
// pairs of bfloat16: a~ = ah + al and b~ = bh + bl, L = |al|. The filter sums ah bh + ah bl + al
// bh,
//   which is a~ b~ without al bl:
//   r = G (H + Na Nb + Na Lb + La Nb)   of 3 d products, G = (3 d + 4) u / (1 - ...)
//     + La Lb                           |al bl|
//     + the other terms above; N bounds |ah|, too
// manhattan: G bounds the sum's error relative to itself, E the distance's; norms and residuals are
//   sums of magnitudes; g = 2 G + 2 E, r = Ra + Rb + tiny.
//
// An item can be left out when k others have v (1 + g) + r <= L and its own v (1 - g) - r > L: its
// distance is then greater than theirs, to the bit. Ties are never left out.

#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "cpp/base/simd.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/detail/distance_filter.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext {

/// A row after it was moved and scaled: upper bounds but for least_norm, a lower one. Sums of
/// magnitudes for manhattan, else euclidean norms.
struct FilterRow {
    double norm = 0;  // of a', of a~, and of the high numbers of Bfloat16Pair
    double least_norm = 0;
    double residual = 0;
    double low = 0;     // of the low numbers of Bfloat16Pair, else 0
    double offset = 0;  // the filter's, about half the norm's square; euclidean items only
};

class FilterSpace {
public:
    enum class Side { query, item };

    /// Whether the bounds hold for rows of such magnitudes and dimensions, dense ones, in float or
    /// double.
    static bool holds(double largest_query, double largest_item, std::size_t dimensions);

    /// Looks at about a hundred items. O(dimensions) time and memory.
    FilterSpace(Metric metric, const Vectors& items, double largest_query, double largest_item,
                Simd simd);

    Score score() const { return metric_ == Metric::manhattan ? Score::magnitude : Score::product; }
    /// Doubles that convert() wants of a row: a multiple of sixteen, zeros behind the dimensions.
    std::size_t padded() const { return center_.size(); }

    /// Whether rows whose norm is 0 have no neighbors.
    bool zero_rows_left_out() const { return metric_ == Metric::cosine; }

    /// Writes padded() elements of T. `row` is scratch afterwards.
    template <class T>
    FilterRow convert(Side side, double* row, T* out) const;

    /// g and r of the bound for a query and items within the bounds that `items` states.
    struct Bound {
        double relative, absolute;
        double least(double score) const { return score * (1 - relative) - absolute; }
        double most(double score) const { return score * (1 + relative) + absolute; }
        /// A score S that is not below any whose t may be this or less.
        template <class S>
        S largest_score(double t) const {
            const double score = (t + absolute) / (1 - relative);
            // For the roundings of the line above
            const double above = score + std::fabs(score) * 0x1p-50;
            const S rounded = static_cast<S>(above);
            return rounded < above ? std::nextafter(rounded, std::numeric_limits<S>::infinity())
                                   : rounded;
        }
    };
    template <class T>
    Bound bound(const FilterRow& query, const FilterRow& items) const;

    /// An upper bound of t for distances up to this one.
    double most_of(const FilterRow& query, double distance) const;
    /// A lower bound of the distance of rows whose t is at least this; euclidean and cosine.
    double least_distance(const FilterRow& query, double least) const;
    /// A lower bound of t for items with norms from items.least_norm to items.norm.
    double least_of(const FilterRow& query, const FilterRow& items) const;

private:
    Metric metric_;
    std::size_t dimensions_;
    Simd simd_;
    std::vector<double> center_;
    double query_scale_ = 1, item_scale_ = 1;
};

}  // namespace gputext
