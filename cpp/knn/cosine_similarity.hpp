// cpp/knn/cosine_similarity.hpp - cosine similarity of one vector and many
//
// Source: the 2012 paper on document similarity, one document against many. In one pass over the
// items: their products with the query and their squares together, as cpp/knn/distance.hpp defines.

#pragma once

#include <optional>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"

namespace gputext {

/// Similarity of two matrices of one row each: both dense or both sparse, of equal dimensions,
/// checked by largest_magnitude(). Nothing when a row is all zeros.
std::optional<double> cosine_similarity(const Vectors& a, const Vectors& b);

/// For each item the similarity to the query, a matrix of one row; NaN for rows of zeros.
/// O(elements) time, bound by memory. Errors: invalid_argument for rows that are not finite, other
/// than one query, different dimensions, dense beside sparse rows; cancelled.
Result<std::vector<double>> cosine_similarities(const Vectors& query, const Vectors& items,
                                                Simd simd, Execution& execution);

}  // namespace gputext
