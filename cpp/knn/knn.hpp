// cpp/knn/knn.hpp - exact k nearest neighbors of many queries
//
// Source: Tian, Hua, Lu, 2015, K-nearest neighbors on a GPU (distances in tiles, filtered by a
// threshold, few of them sorted). The answer is that of a plain search in double precision, to the
// bit: a pass of low precision leaves out only what a proven bound excludes
// (cpp/knn/detail/filter_space.hpp), and what is left is scored again as cpp/knn/distance.hpp
// defines.

#pragma once

#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/neighbors.hpp"

namespace gputext {

/// Whether k, the radius and the number of keys make sense for matrices of any kind. Error:
/// invalid_argument.
Status check_options(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
                     const RowKeys& keys);

/// The errors of knn(), except those for elements that are not finite.
Status check_search(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
                    const RowKeys& keys);

/// The neighbors of all queries. Cosine: rows of zeros have none and are none.
/// Time: queries * distinct items * dimensions operations of the filter, and about k + 10 exact
/// distances for each query; fewer than four queries and sparse rows are not filtered. Memory: the
/// items once more as floats, or as three Bfloat16 an element, up to memory_limit, the queries once
/// more, 16 MB a thread; and within answer_limit the neighbors, and the candidates for them.
/// Errors: invalid_argument for k = 0, a radius that is NaN or -infinity, rows that are not finite
/// (see largest_magnitude(); rows are named "query 3", "item 17"), different dimensions, keys that
/// are not as many as the rows, dense beside sparse rows; cancelled; out_of_memory;
/// memory_limit where answer_limit does not suffice.
Result<Neighbors> knn(const KnnParameters& parameters, const Vectors& queries,
                       const Vectors& items, const RowKeys& keys, Execution& execution);

/// The same, where each query has a radius of its own beside the one of all, a number or infinity:
/// for one who has found k nearer items elsewhere, and wants those that are nearer still.
Result<Neighbors> knn_nearer(const KnnParameters& parameters, std::span<const double> radii,
                             const Vectors& queries, const Vectors& items, Execution& execution);

}  // namespace gputext
