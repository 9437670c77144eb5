// extension/planner/nearest_of_one.hpp - the nearest items of one vector or text, found while the
// item query runs

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <vector>

#include "extension/planner/distance_from.hpp"
#include "extension/planner/item_statement.hpp"
#include "extension/planner/nearest_plan.hpp"
#include "extension/planner/nearest_search.hpp"
#include "extension/planner/query_value.hpp"
#include "extension/queries/executed_rows.hpp"
#include "extension/types/vector_type.hpp"

namespace gputext {

/// The k nearest items of one value by an exact operator. Distances are computed as rows come, and
/// nothing is kept but the columns of the k nearest so far: O(items * d + k log k log items)
/// time for distances of O(d) on the session's thread, O(k) memory. Functions raise errors.
class NearestOfOne {
public:
    /// `context` keeps the columns. What is kept may take `memory_limit`.
    NearestOfOne(const NearestPlan& plan, std::size_t k, MemoryContext context,
                 std::size_t memory_limit)
        : plan_(plan), k_(k), context_(context), memory_limit_(memory_limit) {}

    /// Runs the item query, one that was started of statement_of_items(). The value is computed
    /// with its first row, and not without one.
    void find(const QueryValue& query, ItemStatement& statement);
    /// Whether found() is the answer. Else it is that of the subquery's own plan: there is no
    /// value to compare with, or items that DistanceFrom does not compare; there are fewer than k
    /// that have a distance which is a number, and others behind them; or memory does not suffice.
    bool answered() const { return answered_; }
    /// The nearest first, numbered from 0.
    const std::vector<NearestItem>& found() const { return found_; }
    /// The columns of the item query before the value, of one that was found.
    void get(std::size_t item, TupleTableSlot* row) const;

    std::uint64_t items() const { return items_; }

private:
    class Taker;
    struct Kept {
        double distance;
        std::uint64_t place;  // in the order of the rows
        MinimalTuple columns;

        bool operator<(const Kept& other) const {
            return distance != other.distance ? distance < other.distance : place < other.place;
        }
    };

    bool begin();
    bool take(const ExecutedRow& row);
    void keep(const ExecutedRow& row, double distance);
    void rank();

    const NearestPlan& plan_;
    std::size_t k_;
    MemoryContext context_;
    std::size_t memory_limit_;
    TupleDesc columns_ = nullptr;  // of the item query, before the value

    const QueryValue* query_ = nullptr;  // while the item query runs
    DistanceFrom* distance_ = nullptr;   // null before the first row
    MemoryContext for_row_ = nullptr;    // what a row's value is unpacked to
    std::vector<Kept> kept_;             // a heap with the farthest on top
    std::size_t bytes_ = 0;              // of their columns
    /// Of one that is kept and found, beside its columns.
    static constexpr std::size_t kBytesOfOne = sizeof(Kept) + 2 * sizeof(NearestItem);
    std::uint64_t items_ = 0;
    std::uint64_t without_distance_ = 0;
    bool answered_ = true;
    std::vector<NearestItem> found_;
};

}  // namespace gputext
