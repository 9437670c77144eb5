// cpp/knn/group_search.hpp - nearest neighbors within groups of queries and items, however they
// are compared
//
// A group of few pairs takes an exact distance for each, and next to nothing besides: there may be
// a hundred million of such groups. The rows of larger groups are copied, and searched as a matrix
// of their own, by one thread each or, where a group is most of the work, by all of them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/knn/neighbors.hpp"

namespace gputext {

/// Exact distances of rows, as one thread computes them.
class RowDistances {
public:
    virtual ~RowDistances() = default;

    /// Begins to fetch rows into the processor's cache.
    virtual void expect_query(std::uint32_t query) const = 0;
    virtual void expect_item(std::uint32_t item) const = 0;
    /// The row that distances are taken from.
    virtual void set_query(std::uint32_t query) = 0;
    /// Writes the distances to the items: NaN where there is none, and a number above `limit` where
    /// that is less work than a distance that certainly is above it.
    virtual void to_items(std::span<const std::uint32_t> items, double limit,
                          double* distances) const = 0;
};

/// What is searched, and how. Whoever made it keeps what it points to.
struct GroupSearch {
    /// k, radius, include_ties and the limits count here.
    const KnnParameters& parameters;
    const Vectors& queries;
    const Vectors& items;
    const RowKeys& excluded;
    std::function<std::unique_ptr<RowDistances>()> distances;
    /// Searches all pairs of two matrices of such rows, by these parameters.
    std::function<Result<Neighbors>(const KnnParameters& parameters, const Vectors& queries,
                                     const Vectors& items, const RowKeys& excluded,
                                     Execution& execution)>
        search;
};

/// The neighbors of all queries within their groups. Rows were checked by largest_magnitude().
/// Time: O(elements of the pairs). Memory: within memory_limit copies of rows, and what searches
/// take; within answer_limit the neighbors; 8 bytes a query. Errors: cancelled; memory_limit;
/// those of `search`.
Result<Neighbors> search_groups(const GroupSearch& search, const KeyGroups& groups,
                                 Execution& execution);

}  // namespace gputext
