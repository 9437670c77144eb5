#include "extension/planner/nearest_of_one.hpp"

extern "C" {
#include "utils/memutils.h"
}

#include <algorithm>
#include <cmath>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"

namespace gputext {

/// Takes the rows of the item query.
class NearestOfOne::Taker final : public RowTaker {
public:
    explicit Taker(NearestOfOne& search) : search_(search) {}

    bool take(const ExecutedRow& row) override { return search_.take(row); }

private:
    NearestOfOne& search_;
};

void NearestOfOne::find(const QueryValue& query, ItemStatement& statement) {
    query_ = &query;
    for_row_ = AllocSetContextCreate(context_, "gputext row", ALLOCSET_DEFAULT_SIZES);
    Taker taker(*this);
    ExecutedRows rows(taker);
    const TupleDesc columns = columns_of_items(plan_);
    columns_ = first_columns(columns, plan_.columns);
    if (statement.description()->plannedstmt == plan_.bundles)
        rows.open_bundles(columns, bundled_value(plan_));
    statement.run(rows.destination());
    statement.end();
    rows.end();
    MemoryContextDelete(for_row_);
    rank();
}

/// False where there is no value to compare with.
bool NearestOfOne::begin() {
    const MemoryContext before = MemoryContextSwitchTo(context_);
    distance_ = make_owned<DistanceFrom>(context_, plan_.distance);
    const bool begun = distance_->set(*query_);
    MemoryContextSwitchTo(before);
    return begun;
}

/// False where the subquery's own plan is to answer.
bool NearestOfOne::take(const ExecutedRow& row) {
    if (items_++ == 0 && !begin()) return answered_ = false;
    if (row.nulls[plan_.columns]) {
        ++without_distance_;
        return true;
    }
    double distance = 0;
    MemoryContextReset(for_row_);
    const MemoryContext before = MemoryContextSwitchTo(for_row_);
    answered_ = distance_->measure(row.values[plan_.columns], distance);
    MemoryContextSwitchTo(before);
    if (!answered_) return false;
    if (std::isnan(distance))
        ++without_distance_;
    else if (kept_.size() < k_ || distance < kept_.front().distance)
        keep(row, distance);
    return answered_;
}

/// In the place of the farthest, if there are k.
void NearestOfOne::keep(const ExecutedRow& row, double distance) {
    if (kept_.size() == k_) {
        std::pop_heap(kept_.begin(), kept_.end());
        if (MinimalTuple const farthest = kept_.back().columns) {
            bytes_ -= farthest->t_len;
            pfree(farthest);
        }
        kept_.pop_back();
    }
    MinimalTuple columns = nullptr;
    if (plan_.columns > 0) {
        const MemoryContext before = MemoryContextSwitchTo(context_);
        columns = form_minimal_tuple(columns_, row.values, row.nulls);
        MemoryContextSwitchTo(before);
        bytes_ += columns->t_len;
    }
    attempt_or_raise([&] { kept_.push_back({distance, items_, columns}); });
    std::push_heap(kept_.begin(), kept_.end());
    answered_ = bytes_ + kept_.size() * kBytesOfOne <= memory_limit_;
}

void NearestOfOne::rank() {
    if (kept_.size() < k_ && without_distance_ > 0) answered_ = false;
    if (!answered_) return;
    std::sort_heap(kept_.begin(), kept_.end());
    attempt_or_raise([&] {
        for (const Kept& kept : kept_)
            found_.push_back({static_cast<std::uint32_t>(found_.size()), kept.distance});
    });
}

void NearestOfOne::get(std::size_t item, TupleTableSlot* row) const {
    if (plan_.columns > 0) get_columns(kept_[item].columns, columns_, row);
}

}  // namespace gputext
