// cpp/knn/detail/searches.hpp - what the searches of cpp/knn/knn.cpp share

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/knn/detail/filter_space.hpp"
#include "cpp/knn/distance.hpp"
#include "cpp/knn/distinct_rows.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/knn/nearest_lists.hpp"

namespace gputext {

/// What is searched: queries among classes of equal items. Whoever made it keeps what it points to.
struct KnnProblem {
    const KnnParameters& parameters;
    const Vectors& queries;
    const Vectors& items;
    const RowKeys& keys;
    const DistinctRows& distinct;
    NearestLists& nearest;
    Execution& execution;
    std::atomic<std::uint64_t> rescored{0};

    static constexpr std::uint32_t no_item = UINT32_MAX;
    /// The first item of a class that the query may have as a neighbor.
    std::uint32_t first_item(std::size_t query, std::size_t item_class) const {
        for (const std::uint32_t item : distinct.members(item_class))
            if (keys.differ(query, item)) return item;
        return no_item;
    }

    Distances distances() const { return {parameters.metric, queries, items, parameters.simd}; }
    /// Computes the distance to a class and appends it, unless it is none or beyond the limit. The
    /// query is the one that `from` was set to.
    void rescore(std::uint32_t query, std::uint32_t item_class, double limit, const Distances& from,
                 std::vector<Candidate>& candidates) const {
        const std::uint32_t item = first_item(query, item_class);
        if (item == no_item) return;
        const double distance = from.unless_beyond(limit, item);
        if (distance <= limit) candidates.push_back({distance, item, item_class});
    }
};

/// Filters in the lowest precision that there is a filter of, and in the next ones those queries
/// for which that leaves too many items; returns how many these were. Adds to search.nearest.
/// Error: cancelled.
Result<std::uint64_t> search_filtered(KnnProblem& search, const FilterSpace& space);

}  // namespace gputext
