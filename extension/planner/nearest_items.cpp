#include "extension/planner/nearest_items.hpp"

extern "C" {
#include "access/htup_details.h"
#include "executor/executor.h"
#include "tcop/dest.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/rows/row_bundle.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/release.hpp"
#include "extension/server/session_job.hpp"

namespace gputext {

/// Takes the rows as the executor makes them. The executor knows the first member only.
struct ItemReceiver {
    DestReceiver receiver;
    NearestItems* items;
    const NearestPlan* plan;
    RowPlaces places;
    MemoryContext row_context;
    BundleReader* bundle;  // null where rows come one by one

    void take(const ItemRow& row) {
        const MemoryContext before = MemoryContextSwitchTo(row_context);
        items->take(row, *plan, places);
        MemoryContextSwitchTo(before);
        MemoryContextReset(row_context);
    }
    static bool receive(TupleTableSlot* slot, DestReceiver* self) {
        slot_getallattrs(slot);
        reinterpret_cast<ItemReceiver*>(self)->take({slot->tts_values, slot->tts_isnull, false});
        return true;
    }
    static bool receive_bundle(TupleTableSlot* slot, DestReceiver* self) {
        auto* const to = reinterpret_cast<ItemReceiver*>(self);
        Datum values[BundledRows::kMostColumns];
        bool nulls[BundledRows::kMostColumns];
        slot_getallattrs(slot);
        to->bundle->open(slot->tts_values[0]);
        while (to->bundle->next(values, nulls))
            to->take({values, nulls, to->bundle->value_is_in_row()});
        return true;
    }
};

namespace {

/// Of a row, by the columns behind the vector and the keys.
RowOrigin origin_of(const ItemRow& row, const NearestPlan& plan, RowPlaces& places) {
    const int first = plan.columns + 1 + list_length(plan.keys);
    if (!plan.table.known() || row.nulls[first]) return {};
    const Datum* const system = row.values + first;
    RowPlace place;
    if (plan.table.has_places())
        place =
            places.at(plan.table.with_children ? DatumGetObjectId(system[2]) : plan.table.relation,
                      reinterpret_cast<ItemPointer>(DatumGetPointer(system[1])));
    return {DatumGetTransactionId(system[0]), place, row.value_in_row};
}

/// A worker that loads another build of the library would write other bundles.
bool takes_bundles(const NearestPlan& plan) {
    return plan.bundles != nullptr && !module_is_replaced();
}

/// Order of their coming.
InnerQueryTraits traits_of(const NearestPlan& plan) {
    return {true, plan.parallel_safe};
}

}  // namespace

void NearestItems::keep_columns(const ItemRow& row) {
    const MinimalTuple tuple = form_minimal_tuple(columns_, row.values, row.nulls);
    if (begins_.full()) attempt_or_raise([&] { begins_.reserve(begins_.size() + 1); });
    begins_.append(rows_.size());
    rows_.append(tuple, tuple->t_len);
    constexpr std::uint8_t kNothing[MAXIMUM_ALIGNOF] = {};
    rows_.append(kNothing, MAXALIGN(tuple->t_len) - tuple->t_len);
}

void NearestItems::take(const ItemRow& row, const NearestPlan& plan, RowPlaces& places) {
    const bool null = row.nulls[plan.columns];
    const int first_key = plan.columns + 1;
    if (keyed_) keys.keep_item(row.values + first_key, row.nulls + first_key, !null);
    if (null) {
        ++nulls_;
        return;
    }
    if (plan.columns > 0) keep_columns(row);
    vectors.keep(Int64GetDatum(static_cast<int64>(vectors.size())), {row.values + plan.columns, 1},
                 traits_of(plan), origin_of(row, plan, places));
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
    vectors.set_type(plan.distance.type);
    ItemReceiver to{};
    to.receiver = item_receiver(ItemReceiver::receive);
    to.items = this;
    to.plan = &plan;
    to.places = RowPlaces(plan.table);
    to.row_context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext row", ALLOCSET_DEFAULT_SIZES);

    const TupleDesc columns = columns_of_items(plan);
    columns_ = first_columns(columns, plan.columns);
    set_key_types(plan, columns);
    BundleReader bundle(columns, bundled_value(plan));
    if (statement.description()->plannedstmt == plan.bundles) {
        to.bundle = &bundle;
        to.receiver.receiveSlot = ItemReceiver::receive_bundle;
    }
    statement.run(&to.receiver);
    if (plan.table.known() && !has_row_versions(plan.table)) vectors.forget_row_versions();
    rows_.finish();
    if (keyed_) keys.end_items();
    vectors.end_rows(traits_of(plan));
    searchable_ = vectors.read_vectors_if_alike();
    statement.end();
    MemoryContextDelete(to.row_context);
    measure(plan);
}

void NearestItems::get(std::size_t item, TupleTableSlot* row) const {
    if (columns_->natts == 0) return;
    get_columns(reinterpret_cast<const MinimalTupleData*>(rows_.data() + begins_[item]), columns_,
                row);
}

void NearestItems::release() {
    vectors.release();
    keys.release();
    rows_.release();
}

}  // namespace gputext
