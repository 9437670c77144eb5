// cpp/terms/knn.hpp - exact k nearest texts of many texts, by their weights of terms
//
// A row's weight of a term is its element times the term's factor (cpp/terms/tfidf.hpp). Terms of
// weight 0 count as none. A query and an item are neighbors only when they share a term, and their
// distance is the cosine distance of cpp/knn/distance.hpp of the rows of weights, to the bit, or
// the one of inner products. (The weights are far from what needs that page's powers of two when
// elements are float or int.)
//
// Source: Amorim, 2019, FaSST-kNN, chapter 4: an inverted index, a threshold from a sample, and few
// of the scores sorted. As in cpp/knn/knn.hpp, a pass of low precision leaves out only what a
// proven bound excludes, and what is left is scored again as defined.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"
#include "cpp/knn/knn.hpp"

namespace gputext {

struct TermKnnParameters {
    /// Neighbors of a query, at least 1; KnnParameters::all_items for all.
    std::size_t k = 10;
    /// Only items at most this far; finite or infinity.
    double radius = std::numeric_limits<double>::infinity();
    Metric metric = Metric::cosine;  // or inner_product
    /// Bytes that the inverted index may take; the items are searched in as many parts as that
    /// needs.
    std::size_t memory_limit = std::size_t{1} << 30;
    Simd simd = best_simd();
    std::size_t answer_limit = SIZE_MAX;  // as in KnnParameters
};

/// The errors of term_knn(), except those of largest_magnitude().
Status check_term_search(const TermKnnParameters& parameters, std::span<const double> factors,
                         const Vectors& queries, const Vectors& items, const RowKeys& keys);

/// The neighbors of all queries. Both matrices are sparse, of type float32 or int32, and have as
/// many dimensions as there are factors. Items may be some of a larger collection's: the factors
/// are then the collection's, and the answers of its parts, merged by distance and order, are its
/// own. Errors: invalid_argument as knn(), for dense rows, other types, and another
/// number of factors; cancelled; out_of_memory; memory_limit.
Result<Neighbors> term_knn(const TermKnnParameters& parameters, std::span<const double> factors,
                           const Vectors& queries, const Vectors& items, const RowKeys& keys,
                           Execution& execution);

}  // namespace gputext
