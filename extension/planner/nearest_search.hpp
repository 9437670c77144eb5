// extension/planner/nearest_search.hpp - the nearest items of many queries, as the operator ranks
// them

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <span>
#include <vector>

#include "extension/inputs/string_rows.hpp"
#include "extension/planner/nearest_items.hpp"
#include "extension/planner/nearest_plan.hpp"

namespace gputext {

struct NearestItem {
    std::uint32_t item;
    double distance;  // the operator's
};

/// The queries of a batch, and what is found of each.
struct NearestBatch {
    std::vector<std::uint8_t> elements;  // of the queries, one behind the other
    StringRows trigrams;                 // of the queries, where they are texts
    std::vector<std::uint32_t> keys;     // of the queries: numbers of NearestItems::keys
    std::size_t queries = 0;

    /// Query q has the items [begins[q], begins[q] + counts[q]), the nearest first; with kOrdinary,
    /// it is to be answered by the ordinary query.
    std::vector<NearestItem> found;
    std::vector<std::uint64_t> begins;
    std::vector<std::int64_t> counts;

    static constexpr std::int64_t kOrdinary = -1;

    void clear() {
        elements.clear();
        trigrams.clear();
        keys.clear();
        queries = 0;
        found.clear();
        begins.clear();
        counts.clear();
    }
};

struct SearchCounts {
    std::uint64_t on_cpu = 0, on_device = 0;  // searches
    std::uint64_t rescored = 0;               // distances that the operator was called for
    std::uint64_t widened = 0;                // queries that one search did not suffice for
};

/// Finds the k nearest items of all queries of the batch, of their own keys where there are keys,
/// at most as many as there are. For gputext's own operators, and for texts, the exact search gives
/// ranks and distances. For pgvector's, the search is for some more items; the operator is called
/// for each of them, and ranks by it are right once no item that was left out can be as near
/// (cpp/knn/float_bound.hpp); else the search is repeated for more. Raises errors.
void search_nearest(const NearestPlan& plan, NearestItems& items, std::size_t k,
                    NearestBatch& batch, SearchCounts& counts);

/// How many items of each query a search finds at first.
std::size_t searched_for(const NearestPlan& plan, std::size_t k);

}  // namespace gputext
