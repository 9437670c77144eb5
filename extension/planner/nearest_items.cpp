#include "extension/planner/nearest_items.hpp"

extern "C" {
#include "access/htup_details.h"
#include "executor/executor.h"
#include "utils/lsyscache.h"
}

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/release.hpp"
#include "extension/server/session_job.hpp"

namespace gputext {

namespace {

/// A worker that loads another build of the library would write other bundles.
bool takes_bundles(const NearestPlan& plan) {
    return plan.bundles != nullptr && !module_is_replaced();
}

/// Order of their coming.
InnerQueryTraits traits_of(const NearestPlan& plan) {
    return {true, plan.parallel_safe};
}

}  // namespace

/// Takes the rows of the item query.
class NearestItems::Taker final : public RowTaker {
public:
    Taker(NearestItems& items, const NearestPlan& plan) : items_(items), plan_(plan) {}

    bool take(const ExecutedRow& row) override {
        items_.take(row, plan_);
        return true;
    }

private:
    NearestItems& items_;
    const NearestPlan& plan_;
};

void NearestItems::keep_columns(const ExecutedRow& row) {
    const MinimalTuple tuple = form_minimal_tuple(columns_, row.values, row.nulls);
    append_or_raise(begins_, std::uint64_t{rows_.size()});
    rows_.append(tuple, tuple->t_len);
    constexpr std::uint8_t kNothing[MAXIMUM_ALIGNOF] = {};
    rows_.append(kNothing, MAXALIGN(tuple->t_len) - tuple->t_len);
}

void NearestItems::take(const ExecutedRow& row, const NearestPlan& plan) {
    const bool null = row.nulls[plan.columns];
    const int first_key = plan.columns + 1;
    if (keyed_) keys.add_item(row.values + first_key, row.nulls + first_key, !null);
    if (null) {
        ++nulls_;
        return;
    }
    if (plan.columns > 0) keep_columns(row);
    vectors.collect(Int64GetDatum(static_cast<int64>(vectors.size())), {row.values + plan.columns, 1},
                 traits_of(plan), row.origin);
    show_rows(vectors.size(), vectors.bytes() + rows_.size());
}

/// Finds out whether the bound holds.
void NearestItems::measure(const NearestPlan& plan) {
    if (plan.distance.exact || !searchable_) return;
    const Vectors view = vectors.view();
    NormRange* const found = &norms_;
    run_threaded([&view, found](Execution& execution) -> Status {
        const Result<NormRange> range = norm_range(view, execution);
        if (!range.ok()) return range.status();
        *found = *range;
        return {};
    });
    searchable_ = norms_.fits();
}

bool NearestItems::read_trigrams() {
    // pg_trgm may have lost it since the plan was made.
    const Oid function = trigram_function();
    if (!OidIsValid(function)) return false;
    const MemoryContext before = MemoryContextSwitchTo(context_);
    reader_.emplace(function);
    MemoryContextSwitchTo(before);
    return read_trigrams_if_they_fit(*reader_, kLongestText, vectors, trigrams);
}

void NearestItems::set_key_types(const NearestPlan& plan, TupleDesc columns) {
    keyed_ = plan.keys != NIL;
    if (!keyed_) return;
    auto* const types = make_owned<std::vector<Oid>>(CurrentMemoryContext);
    attempt_or_raise([&] {
        for (int i = 0; i < list_length(plan.keys); ++i)
            types->push_back(TupleDescAttr(columns, plan.columns + 1 + i)->atttypid);
    });
    for (Oid& type : *types) type = getBaseType(type);
    keys.set_types(*types);
}

const PlannedStmt* statement_of_items(const NearestPlan& plan) {
    return takes_bundles(plan) ? plan.bundles : plan.items;
}

void NearestItems::read(const NearestPlan& plan, ItemStatement& statement) {
    vectors.set_type(plan.distance.trigrams
                         ? VectorType{VectorType::Form::dense, ElementType::int32}
                         : plan.distance.type);
    Taker taker(*this, plan);
    ExecutedRows rows(taker);
    const TupleDesc columns = columns_of_items(plan);
    columns_ = first_columns(columns, plan.columns);
    set_key_types(plan, columns);
    if (plan.table.known())
        rows.set_origins({plan.table, plan.columns + 1 + list_length(plan.keys)});
    if (statement.description()->plannedstmt == plan.bundles)
        rows.open_bundles(columns, bundled_value(plan));
    statement.run(rows.destination());
    rows.end();
    if (plan.table.known() && !has_row_versions(plan.table)) vectors.forget_row_versions();
    rows_.finish();
    if (keyed_) keys.end_items();
    vectors.end_rows(traits_of(plan));
    searchable_ = plan.distance.trigrams ? read_trigrams() : vectors.read_vectors_if_alike();
    statement.end();
    measure(plan);
}

void NearestItems::get(std::size_t item, TupleTableSlot* row) const {
    if (columns_->natts == 0) return;
    get_columns(reinterpret_cast<const MinimalTupleData*>(rows_.data() + begins_[item]), columns_,
                row);
}

void NearestItems::release() {
    vectors.release();
    trigrams.release();
    keys.release();
    rows_.release();
}

}  // namespace gputext
