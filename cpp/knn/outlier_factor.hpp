// cpp/knn/outlier_factor.hpp - local outlier factors: density around the neighbors over density
// around the row
//
// Source: Breunig, Kriegel, Ng, Sander, 2000, LOF: identifying density-based local outliers. With
// the k-distance of p, the distance to its k-th nearest other row, and its neighbors N(p):
//
//   reach(p, o) = max(k-distance(o), distance(p, o))
//   density(p)  = |N(p)| / sum of reach(p, o) over o in N(p)
//   factor(p)   = mean of density(o) over o in N(p) / density(p)
//
// Rows whose neighbors are all at distance 0, k copies or more, have no finite density; the two
// rules differ there, as their sources do.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"
#include "cpp/knn/distinct_rows.hpp"
#include "cpp/knn/knn.hpp"

namespace gputext {

enum class TieRule {
    /// N(p) are exactly k rows; of those just as far as the k-th the first in input order. 1e-10 is
    /// added to the mean of reach, so that a density is at most 1e10.
    sklearn,
    /// N(p) are all rows within the k-distance, as the definition has it. A density may be
    /// infinite: that row's factor is 1, and one with a finite density beside it has an infinite
    /// factor (ELKI's rule).
    breunig
};

struct OutlierParameters {
    std::size_t k = 20;  // at least 1; as many as there are other rows, where these are fewer
    Metric metric = Metric::euclidean;  // not inner_product
    TieRule ties = TieRule::sklearn;
    std::size_t memory_limit = std::size_t{1} << 30;  // as in KnnParameters
    Simd simd = best_simd_with_bfloat16();
    /// Bytes that the neighbors may take: 28 each, of the k of each distinct row.
    std::size_t answer_limit = SIZE_MAX;
};

/// A factor for each row, about 1 inside a cluster and more outside; NaN for a row that has no
/// neighbors, as rows of zeros under cosine or a single row.
/// Time and memory: of knn() among the distinct rows, with all ties under breunig.
/// Errors: knn()'s, rows being named "item 17"; invalid_argument for k = 0 and for
/// inner_product; memory_limit, before the search where k alone says it.
Result<std::vector<double>> local_outlier_factors(const OutlierParameters& parameters,
                                                  const Vectors& items, Execution& execution);

/// The search for neighbors that factors are computed from: of the distinct rows among themselves.
class OutlierSearch {
public:
    /// Keeps a view of the items. Errors: those of local_outlier_factors() before its search.
    Status set(const OutlierParameters& parameters, const Vectors& items, Execution& execution);

    /// What the rows are to be asked for, and their keys: neighbors among themselves, never their
    /// own.
    KnnParameters parameters() const;
    const Vectors& rows() const { return rows_.vectors(); }
    RowKeys keys() const { return {own_, own_}; }

    /// A factor for each item, from the neighbors of all rows: one answer, or several for
    /// consecutive rows. O(neighbors). Errors: cancelled; memory_limit.
    Result<std::vector<double>> factors(std::span<const Neighbors> of_rows,
                                        Execution& execution) const;

private:
    OutlierParameters parameters_;
    Vectors items_;
    DistinctRows distinct_;
    GatheredRows rows_;
    std::vector<std::uint32_t> own_;  // a key of each row
};

}  // namespace gputext
