// cpp/hnsw/links.hpp - links of the rows of one layer of an HNSW index, and the neighbors that
// these make
//
// The rows of the layer are numbered in their order. Choose(list, limit, slack), with a list in the
// order of (distance, number): a candidate is chosen unless one that was chosen before is at most
// distance / slack from it; if then fewer than the limit are chosen, others of the list are, too,
// in its order (Malkov, Yashunin, 2018, algorithm 4, with keepPrunedConnections; Subramanya et al.,
// 2019, DiskANN, for the slack).
//
//   - The candidates of row e are the nearest rows before it, by (distance, number). Of many rows,
//     those from `exact_rows` on form blocks of `probing_rows`. Of the rows before its block, only
//     those are candidates of e whose own cluster is one that e probes
//     (cpp/knn/probed_clusters.hpp). The first rows keep the long links between clusters.
//   - Row e links to Choose(its candidates, places, 1).
//   - Its neighbors are Choose(the rows that it links to and those that link to it, places, slack),
//     where the original prunes after each link: with slack 17/16, or 1 for inner products, of
//     which a part of one is no nearer.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/knn.hpp"

namespace gputext {

struct HnswLinkParameters {
    Metric metric = Metric::euclidean;
    /// Nearest rows before a row, among which those are chosen that it links to; at least 1.
    std::size_t candidates = 128;
    /// The most links of a row, and the most neighbors; at least 1.
    std::size_t places = 32;
    /// Rows that are compared with all before them, and blocks of the others, where these have
    /// clusters to probe.
    std::size_t exact_rows = SIZE_MAX, probing_rows = std::size_t{1} << 16;
    /// Bytes that searches may take beside the values: KnnParameters::memory_limit.
    std::size_t memory_limit = std::size_t{1} << 30;
    /// Rows that are searched for together, with 16 bytes for each candidate. What is found does
    /// not depend on it.
    std::size_t block_rows = 16384;
    Simd simd = best_simd_with_bfloat16();
};

/// Of the choice among those that link back. With it searches with short lists find more, and
/// compare no more rows. So much is the best of 1 to 1.12; slack in the choice of a row's own
/// links, too, finds less.
inline double slack_of_neighbors(Metric metric) {
    return metric == Metric::inner_product ? 1 : 17.0 / 16;
}

/// The values of a layer's rows, dense and finite, for metric cosine not zero, and the centroids of
/// their clusters: none where each row is compared with all before it.
struct LayerValues {
    Vectors rows, centroids = {};

    /// Rows that are compared with all before them.
    std::size_t exact_rows(const HnswLinkParameters& parameters) const {
        return centroids.rows == 0 ? rows.rows : std::min(rows.rows, parameters.exact_rows);
    }
};

/// A part of a layer's rows.
struct LayerRows {
    std::size_t begin, end;

    std::size_t size() const { return end - begin; }
};

/// Of rows, one after the other, `places` rows and how far they are; kNoElement where there are no
/// more.
struct HnswLinks {
    std::span<std::uint32_t> rows;
    std::span<double> distances;
};

/// knn_nearer(), or what gives the same and may find more.
using RadiusSearch =
    std::function<Result<Neighbors>(const KnnParameters& parameters, std::span<const double> radii,
                                    const Vectors& queries, const Vectors& items)>;

/// Writes the links of these rows to the nearest ones before them. Searches those of other blocks,
/// and of other parts of a block, by `search`, or by knn_nearer() where that is null; those of
/// clusters by the latter. Time: rows * rows before them * dimensions operations of the search's
/// filter, a quarter of it for rows that probe clusters, and some hundred exact distances a row.
/// Its last phase is "linking rows", a step for each. Errors: cancelled, out_of_memory; those of
/// `search`.
Status link_to_earlier(const HnswLinkParameters& parameters, const LayerValues& values,
                       const LayerRows& rows, const HnswLinks& links, Execution& execution,
                       const RadiusSearch& search = {});

/// Writes the neighbors of these rows, `places` of each, by the links of all rows of the layer.
/// Time: some ten exact distances a row. Memory: 4 bytes for each link to these rows. Errors:
/// cancelled, out_of_memory.
Status link_back(const HnswLinkParameters& parameters, const Vectors& values,
                 const HnswLinks& links, const LayerRows& rows, std::span<std::uint32_t> neighbors,
                 Execution& execution);

// ---- A layer ----

struct LayerToLink {
    HnswLinkParameters parameters;
    LayerValues values;  // of the layer's rows, perhaps with others behind them
    std::size_t rows;    // from the first one on
};

/// The neighbors of all rows, `places` of each: all of this on the execution's threads. Memory: 20
/// bytes for each place. Errors: cancelled, out_of_memory.
Result<std::vector<std::uint32_t>> link_layer(const LayerToLink& layer, Execution& execution);

}  // namespace gputext
