// cpp/knn/detail/distance_filter.hpp - filters pairs of rows that may be near, by scores computed
// in tiles
//
// A score is a number that orders the items of one query about as their distances do, less being
// nearer:
//
//     product    offset of the item - sum over i of query[i] * item[i]
//     magnitude  offset of the item + sum over i of |query[i] - item[i]|
//
// Scores are computed a tile at a time: `queries` x `items` sums are kept in registers through all
// dimensions, compared with a gate for each query, and forgotten unless they pass. It is the inner
// loop of a matrix product (Goto and van de Geijn, Anatomy of high-performance matrix
// multiplication, 2008) without the matrix. Of floats and doubles the sum runs over i in ascending
// order, a multiplication and an addition of T a step, fused or not; products of bfloat16 are exact
// floats, which AMX and AVX-512 add up in orders of their own. cpp/knn/detail/filter_space.hpp
// bounds the error at any order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "cpp/base/simd.hpp"

namespace gputext {

enum class Score { product, magnitude };

/// The upper half of a binary32: its exponents, and eight digits.
struct Bfloat16 {
    std::uint16_t bits;
};

/// A number as the nearest Bfloat16 and the one nearest to what that leaves: about sixteen digits.
/// Of a product of two such numbers a filter takes high * high + high * low + low * high.
struct Bfloat16Pair {
    Bfloat16 high, low;
};

template <class T>
inline constexpr bool is_bfloat16 = std::is_same_v<T, Bfloat16> || std::is_same_v<T, Bfloat16Pair>;
/// Products that the filter takes of two elements.
template <class T>
inline constexpr std::size_t products_of = std::is_same_v<T, Bfloat16Pair> ? 3 : 1;
/// The type that scores of elements T have.
template <class T>
using ScoreOf = std::conditional_t<is_bfloat16<T>, float, T>;
/// The type of the numbers in panels of elements T.
template <class T>
using PanelNumber = std::conditional_t<is_bfloat16<T>, Bfloat16, T>;

/// How rows lie in a panel.
struct PanelShape {
    enum class Order {
        /// Element i of row r at [i * rows + r].
        columns,
        /// As AMX multiplies from the left: number i of row r, its sign changed, at
        /// [i / 32][r / 16][r % 16][i % 32]. Of pairs the numbers are all high ones, all high ones
        /// again, and all low ones.
        left_tiles,
        /// As AMX multiplies from the right: at [i / 32][r / 16][i % 32 / 2][r % 16][i % 2]. Of
        /// pairs
        /// the numbers are all high ones, all low ones, and all high ones again.
        right_tiles,
    };
    std::size_t rows;
    Order order = Order::columns;
    std::size_t products = 1;  // products_of<T>

    /// Numbers of a row with the zeros behind it that tiles want.
    std::size_t padded(std::size_t dimensions) const {
        return order == Order::columns ? dimensions : (products * dimensions + 31) / 32 * 32;
    }
    /// Numbers of a panel.
    std::size_t size(std::size_t dimensions) const { return rows * padded(dimensions); }
};

/// What is kept of a tile's queries: scores that do not exceed the gate, and the items' positions.
template <class S>
struct PassedScores {
    static constexpr std::size_t max_queries = 32;

    S gate[max_queries];
    S* scores[max_queries];
    std::uint32_t* positions[max_queries];
    std::size_t count[max_queries];
    std::size_t capacity[max_queries];
};

template <class T>
struct DistanceFilter {
    PanelShape queries, items;

    /// Scans panels [begin, end) of items, which lie one behind the other at `panels`, as their
    /// offsets do. An item whose offset is NaN never passes. Items' positions are counted through
    /// all panels. Returns the panel to go on with: `end`, or one before which some query's list
    /// has no room left for a panel's items. 2 * dimensions operations a pair.
    std::size_t (*scan)(const PanelNumber<T>* queries, const PanelNumber<T>* panels,
                        const ScoreOf<T>* offsets, std::size_t dimensions, std::size_t begin,
                        std::size_t end, PassedScores<ScoreOf<T>>& passed);
};

/// Whether there are filters of Bfloat16 and of pairs: only for products, by amx and bfloat16.
bool bfloat16_filter_available(Score score, Simd simd);

/// T is float or double, or Bfloat16 or Bfloat16Pair where these are available.
template <class T>
DistanceFilter<T> distance_filter(Score score, Simd simd);
template <>
DistanceFilter<Bfloat16> distance_filter(Score score, Simd simd);
template <>
DistanceFilter<Bfloat16Pair> distance_filter(Score score, Simd simd);

/// Copies `count` rows into a panel, with zeros where the shape has more. Row r begins at
/// from[r * stride], with zeros behind its dimensions up to the stride.
template <class T>
void fill_panel(const T* from, std::size_t stride, std::size_t count, std::size_t dimensions,
                const PanelShape& shape, PanelNumber<T>* panel);

}  // namespace gputext
