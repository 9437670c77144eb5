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
// multiplication, 2008) without the matrix. The sum runs over i in ascending order, a
// multiplication and an addition of T a step, fused or not; cpp/knn/detail/filter_space.hpp bounds
// its error.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/simd.hpp"

namespace gputext {

enum class Score { product, magnitude };

/// What is kept of a tile's queries: scores that do not exceed the gate, and the items' positions.
template <class T>
struct PassedScores {
    static constexpr std::size_t max_queries = 8;

    T gate[max_queries];
    T* scores[max_queries];
    std::uint32_t* positions[max_queries];
    std::size_t count[max_queries];
    std::size_t capacity[max_queries];
};

/// Rows of a panel lie side by side: element i of row r at [i * rows + r].
template <class T>
struct DistanceFilter {
    std::size_t queries;  // rows of a panel of queries
    std::size_t items;    // rows of a panel of items

    /// Scans panels [begin, end) of items, which lie one behind the other at `panels`, as their
    /// offsets do. An item whose offset is NaN never passes. Items' positions are counted through
    /// all panels. Returns the panel to go on with: `end`, or one before which some query's list
    /// has no room left for a panel's items. 2 * dimensions operations a pair.
    std::size_t (*scan)(const T* queries, const T* panels, const T* offsets, std::size_t dimensions,
                        std::size_t begin, std::size_t end, PassedScores<T>& passed);
};

/// T is float or double.
template <class T>
DistanceFilter<T> distance_filter(Score score, Simd simd);

/// Copies rows into a panel of `rows` of them, with zeros where there are fewer. Row r begins at
/// from[r * stride].
template <class T>
void fill_panel(const T* from, std::size_t stride, std::size_t count, std::size_t dimensions,
                std::size_t rows, T* panel);

}  // namespace gputext
