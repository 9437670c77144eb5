// cpp/knn/dbscan.hpp - clusters of rows that lie densely (DBSCAN)
//
// Source: Ester, Kriegel, Sander, Xu, 1996, A density-based algorithm for discovering clusters in
// large spatial databases with noise. The neighborhood of a row are the rows at most epsilon away,
// the row itself among them; a row of zeros has none under cosine. A row with at least min_points
// rows in its neighborhood is core. Core rows in each other's neighborhood are in one cluster, and
// clusters are numbered in the order of their first core rows. Any other row is in the first
// cluster that has a core row in its neighborhood, or else is noise. These are the labels that
// scikit-learn gives.
//
// A search finds the neighborhoods of some rows at a time, and they are dropped again. Whether a row
// is core is known when its own neighborhood is: then it is joined with those of its neighbors that
// are known to be core. One that is not known so far does the same later, so that one search finds
// all. What is kept of a row that is not core are neighbors, fewer than min_points.
//
// Where min_points is 1 or 2 all rows with a neighbor are core. Then each pair need be found once
// only: the neighbors of a row are searched among it and those behind it.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "cpp/base/disjoint_sets.hpp"
#include "cpp/base/execution.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"
#include "cpp/knn/distinct_rows.hpp"
#include "cpp/knn/distinct_search.hpp"
#include "cpp/knn/neighbors.hpp"

namespace gputext {

struct DbscanParameters {
    double epsilon = 0;          // finite, at least 0
    std::size_t min_points = 5;  // at least 1
    Metric metric = Metric::euclidean;                // not inner_product
    std::size_t memory_limit = std::size_t{1} << 30;  // as in KnnParameters
    Simd simd = best_simd_with_bfloat16();
    /// Bytes that neighbors may take: those of the rows that are searched at a time, and those kept
    /// of rows that are not core.
    std::size_t answer_limit = SIZE_MAX;
};

struct DbscanClusters {
    static constexpr std::uint32_t kNoise = std::numeric_limits<std::uint32_t>::max();

    std::uint32_t count = 0;              // of clusters
    std::vector<std::uint32_t> clusters;  // of each row: 0..count - 1, or kNoise
    std::vector<std::uint8_t> core;       // of each row whether it is core: 0 or 1
};

/// The clusters of the rows.
/// Time: of knn() within the radius epsilon among the distinct rows, half of it for min_points of 1
/// and 2; about O(1) for each neighbor. Memory: the distinct rows once more if not all are distinct,
/// about 30 bytes a row, and answer_limit.
/// Errors: knn()'s, rows being named "item 17"; invalid_argument for an epsilon that is negative or
/// not finite, for min_points = 0 and for inner_product; memory_limit where the neighbors of a
/// single row, or those kept, are too many.
Result<DbscanClusters> dbscan(const DbscanParameters& parameters, const Vectors& items,
                              Execution& execution);

/// The same in parts, for several searches at a time: the functions in this order.
class DbscanSearch {
public:
    /// Keeps a view of the items. Errors: those of dbscan() before its search.
    Status set(const DbscanParameters& parameters, const Vectors& items, Execution& execution);

    /// What is searched: within rows(), of them.
    KnnParameters parameters() const;
    const Vectors& rows() const { return rows_; }

    /// Shares the rows out in parts, at least one.
    void share_out(std::size_t parts);
    /// Searches for the neighbors of a part's rows, or of those that are left where an error ended
    /// it. Different parts may be searched by different threads at once.
    Status run(std::size_t part, const KnnFunction& search, Execution& execution);
    /// After all parts.
    Result<DbscanClusters> clusters(Execution& execution);

private:
    /// What is known of a row.
    enum State : std::uint8_t { kUnknown, kNotCore, kCore };

    /// A row that is not core, and a neighbor that may be.
    struct KeptNeighbor {
        std::uint32_t row;
        std::uint32_t neighbor;
    };

    struct Part {
        std::size_t next;                             // the first row that is left
        std::size_t end;
        std::size_t most;                             // rows of a block
        std::size_t step;                             // the same, of the next block
        std::vector<std::vector<KeptNeighbor>> kept;  // of each thread
    };

    /// Whether each row with a neighbor is core, and each pair is searched for once.
    bool neighbors_are_core() const { return parameters_.min_points <= 2; }
    std::atomic_ref<std::uint8_t> state(std::uint32_t row) {
        return std::atomic_ref<std::uint8_t>(states_[row]);
    }
    Status take(Part& part, std::size_t first_item, Neighbors& found, Execution& execution);
    bool is_core(std::span<const std::uint32_t> neighbors) const;
    Status join(std::uint32_t row, std::span<const std::uint32_t> neighbors,
                std::vector<KeptNeighbor>& kept);

    DbscanParameters parameters_;
    DistinctRows distinct_;
    GatheredRows gathered_;
    KnownElements known_;
    Vectors rows_;                      // the distinct ones; all below is of these
    std::vector<std::uint8_t> states_;  // a State of each row
    std::optional<DisjointSets> sets_;  // of core rows
    std::vector<Part> parts_;
    std::optional<MemoryBudget> kept_;  // bytes of kept neighbors
};

}  // namespace gputext
