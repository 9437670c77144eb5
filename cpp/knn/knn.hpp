// cpp/knn/knn.hpp - exact k nearest neighbours of many queries
//
// Source: Tian, Hua, Lu, 2015, K-nearest neighbours on a GPU (distances in tiles, filtered by a
// threshold, few of them sorted). The answer is that of a plain search in double precision, to the
// bit: a pass of low precision leaves out only what a proven bound excludes
// (cpp/knn/detail/filter_space.hpp), and what is left is scored again as cpp/knn/distance.hpp
// defines.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext {

struct KnnParameters {
    /// At least 1; every item where there are fewer.
    std::size_t k = 10;
    Metric metric = Metric::cosine;
    /// Only items at most this far; finite or infinity. With k = all_items: every one of them.
    double radius = std::numeric_limits<double>::infinity();
    /// Also the items that are just as far as the k-th, however many.
    bool include_ties = false;
    /// Bytes that the packed items may take; they are searched in as many parts as that needs.
    std::size_t memory_limit = std::size_t{1} << 30;
    Simd simd = best_simd();
    /// Bytes that the neighbours may take until they are returned, kBytesOfNeighbour each.
    std::size_t answer_limit = SIZE_MAX;

    static constexpr std::size_t all_items = SIZE_MAX;
};

/// A neighbour's part of the answer, twice: while it is put together, there are its parts as well.
inline constexpr std::size_t kBytesOfNeighbour = 2 * (sizeof(std::uint32_t) + sizeof(double));

/// A number for each query and each item. A query and an item with equal numbers are never
/// neighbours: so a row is kept from being its own neighbour, by its id and not by its distance.
/// None at all where every pair counts.
struct RowKeys {
    std::span<const std::uint32_t> queries, items;

    bool differ(std::size_t query, std::size_t item) const {
        return queries.empty() || queries[query] != items[item];
    }
};

/// Query q has neighbours begins[q] to begins[q + 1] - 1, by distance and then by the items' input
/// order; the n-th of them has rank n.
struct Neighbours {
    std::vector<std::uint64_t> begins;
    std::vector<std::uint32_t> items;
    std::vector<double> distances;

    /// How the answer was found: it does not depend on these, and they depend on the device.
    std::uint64_t rescored = 0;   // pairs whose distance was computed in double precision
    std::uint64_t escalated = 0;  // queries for which the first filter's bound was too wide
};

/// Whether k, the radius and the number of keys make sense for matrices of any kind. Error:
/// invalid_argument.
Status check_options(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
                     const RowKeys& keys);

/// What knn() refuses, but for elements that are not finite.
Status check_search(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
                    const RowKeys& keys);

/// The neighbours of all queries. Cosine: rows of zeros have none and are none.
/// Time: queries * distinct items * dimensions operations of the filter, and about k + 10 exact
/// distances for each query; fewer than four queries and sparse rows are not filtered. Memory: the
/// items once more as floats, up to memory_limit, the queries once more, 16 MB a thread; and within
/// answer_limit the neighbours, and the candidates for them.
/// Errors: invalid_argument for k = 0, a radius that is NaN or -infinity, rows that are not finite
/// (see largest_magnitude(); rows are named "query 3", "item 17"), different dimensions, keys that
/// are not as many as the rows, dense beside sparse rows; cancelled; out_of_memory;
/// memory_limit where answer_limit does not suffice.
Result<Neighbours> knn(const KnnParameters& parameters, const Vectors& queries,
                       const Vectors& items, const RowKeys& keys, Execution& execution);

}  // namespace gputext
