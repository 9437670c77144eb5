// cpp/knn/neighbors.hpp - what a search of nearest neighbors is asked, and what it answers

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext {

struct KnnParameters {
    /// Neighbors of a query, at least 1; all items where there are fewer.
    std::size_t k = 10;
    Metric metric = Metric::cosine;
    /// Only items at most this far; finite or infinity. With k = all_items: every one of them.
    double radius = std::numeric_limits<double>::infinity();
    /// Whether all items as far as the k-th are neighbors as well.
    bool include_ties = false;
    /// Bytes that the packed items may take; they are searched in as many parts as that needs.
    std::size_t memory_limit = std::size_t{1} << 30;
    Simd simd = best_simd_with_bfloat16();
    /// Bytes that the neighbors may take until they are returned, kBytesOfNeighbor each.
    std::size_t answer_limit = SIZE_MAX;

    static constexpr std::size_t all_items = SIZE_MAX;
};

/// A neighbor's part of the answer, twice: while it is put together, there are its parts as well.
inline constexpr std::size_t kBytesOfNeighbor = 2 * (sizeof(std::uint32_t) + sizeof(double));

/// A number for each query and each item. A query and an item with equal numbers are never
/// neighbors: so a row is kept from being its own neighbor, by its id and not by its distance.
/// Empty where every pair counts.
struct RowKeys {
    std::span<const std::uint32_t> queries, items;

    bool differ(std::size_t query, std::size_t item) const {
        return queries.empty() || queries[query] != items[item];
    }
};

/// Query q has neighbors begins[q] to begins[q + 1] - 1, by distance and then by the items' input
/// order; the n-th of them has rank n.
struct Neighbors {
    std::vector<std::uint64_t> begins;
    std::vector<std::uint32_t> items;
    std::vector<double> distances;

    /// How the answer was found: it does not depend on these, and they depend on the device.
    std::uint64_t rescored = 0;   // pairs whose distance was computed in double precision
    std::uint64_t escalated = 0;  // queries for which the first filter's bound was too wide
};

// ---- Makes one answer of the neighbors found in parts of a search ----

/// Merges the neighbors that each part found for the same queries. first_items: the number of a
/// part's first item, ascending. Keeps the k nearest by distance and then by number, as does a
/// search in the whole collection where each part has its own k nearest; its counts are the parts'
/// sums. O(neighbors * parts) time, on the execution's threads. Error: cancelled.
Status merge_neighbors(std::span<const Neighbors> parts,
                        std::span<const std::uint32_t> first_items, std::size_t k,
                        Execution& execution, Neighbors& answer);

// ---- One answer from neighbors that were found for some queries at a time ----

/// Answers for lists of queries. A query is in one list at most; one that is in none has no
/// neighbors. Used by one thread.
class ScatteredNeighbors {
public:
    /// Neighbors n of `found` are those of query queries[n].
    void add(std::vector<std::uint32_t> queries, Neighbors found);

    /// Makes the answer for all queries, and gives up the lists. The counts are the lists' sums.
    /// O(queries + neighbors) time, on the execution's threads; twice the neighbors' memory until
    /// it returns. Error: cancelled.
    Status put_together(std::size_t queries, Execution& execution, Neighbors& answer);

private:
    struct Piece {
        std::vector<std::uint32_t> queries;
        Neighbors found;
    };

    std::vector<Piece> pieces_;
};

}  // namespace gputext
