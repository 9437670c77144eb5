// cpp/knn/partial_answers.hpp - merges the neighbors that were found in parts of the items
//
// Each part, such as a server with some of the items, answers for the same queries. The answers
// come neighbor by neighbor, in any order. Only those that may still be among a query's k nearest
// are kept, so that the memory does not depend on the number of parts.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// An item that a part has found for a query. The distance is not NaN.
struct FoundItem {
    double distance;
    std::uint64_t item;

    /// Whether it is the nearer one; of two that are equally far the one with the smaller number.
    friend bool operator<(const FoundItem& a, const FoundItem& b) {
        return a.distance != b.distance ? a.distance < b.distance : a.item < b.item;
    }
};

/// Neighbors of a query that were found side by side.
struct FoundPiece {
    std::uint32_t query;
    std::span<const FoundItem> found;
};

/// Which of two items at the same distance is the nearer one.
enum class FoundTies {
    by_item,  // the one with the smaller number
    open      // known only after renumber(): all items as far as the k-th are kept until then
};

class PartialAnswers {
public:
    static constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();

    /// k: at least 1; kAll keeps all neighbors.
    PartialAnswers(std::size_t k, FoundTies ties, std::size_t memory_limit)
        : k_(k), ties_(ties), budget_(memory_limit) {}

    /// Whether an item at that distance may be among the query's k nearest, as far as is known.
    bool wants(std::uint32_t query, double distance) const {
        return query >= queries_.size() || distance <= queries_[query].limit;
    }
    /// Takes in a neighbor. Queries are numbered from 0 on, and their memory is that of the
    /// largest number. Amortised O(1). Error: memory_limit. Throws std::bad_alloc.
    Status add(std::uint32_t query, FoundItem found);

    /// Takes in many neighbors. O(neighbors), on the execution's threads. `pieces` are put into
    /// the order of their queries. Errors: cancelled; memory_limit.
    Status add(std::span<FoundPiece> pieces, Execution& execution);

    /// Replaces each item by its number in an order: the item i by ranks[i]. O(neighbors), on the
    /// execution's threads. Error: cancelled.
    Status renumber(std::span<const std::uint32_t> ranks, Execution& execution);
    /// After the last neighbor: keeps the k nearest of each query, the nearest first. O(n log k)
    /// for n neighbors, on the execution's threads. Error: cancelled.
    Status finish(Execution& execution);

    std::size_t queries() const { return queries_.size(); }
    std::span<const FoundItem> of(std::uint32_t query) const { return queries_[query].found; }
    /// Bytes that the neighbors take.
    std::size_t bytes() const { return budget_.used(); }

private:
    struct Query {
        std::vector<FoundItem> found;
        std::size_t most = 0;  // neighbors at which the farthest ones are dropped
        double limit = std::numeric_limits<double>::infinity();  // what is farther is dropped
    };

    Status add_query(std::uint32_t query);
    Status make_room(Query& query);
    void drop_farthest(Query& query) const;
    template <class Body>
    Status for_each_query(const char* phase, Execution& execution, const Body& body);

    std::size_t k_;
    FoundTies ties_;
    MemoryBudget budget_;
    std::vector<Query> queries_;
};

}  // namespace gputext
