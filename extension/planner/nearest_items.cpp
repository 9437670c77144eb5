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
#include "extension/server/activity.hpp"
#include "extension/server/threaded_work.hpp"

namespace gputext {

/// Takes the rows as the executor makes them. The executor knows the first member only.
struct ItemReceiver {
    DestReceiver receiver;
    NearestItems* items;
    const NearestPlan* plan;
    RowPlaces places;
    MemoryContext row_context;

    static bool receive(TupleTableSlot* slot, DestReceiver* self) {
        auto* const to = reinterpret_cast<ItemReceiver*>(self);
        const MemoryContext before = MemoryContextSwitchTo(to->row_context);
        to->items->take(slot, *to->plan, to->places);
        MemoryContextSwitchTo(before);
        MemoryContextReset(to->row_context);
        return true;
    }
};

namespace {

/// Of the row in the slot, by the columns behind the vector and the keys.
RowOrigin origin_of(const TupleTableSlot* slot, const NearestPlan& plan, RowPlaces& places) {
    const int first = plan.columns + 1 + list_length(plan.keys);
    if (!plan.table.known() || slot->tts_isnull[first]) return {};
    RowPlace place;
    if (plan.table.has_places())
        place =
            places.at(plan.table.with_children ? DatumGetObjectId(slot->tts_values[first + 2])
                                               : plan.table.relation,
                      reinterpret_cast<ItemPointer>(DatumGetPointer(slot->tts_values[first + 1])));
    return {DatumGetTransactionId(slot->tts_values[first]), place};
}

/// Order of their coming.
InnerQueryTraits traits_of(const NearestPlan& plan) {
    return {true, plan.parallel_safe};
}

}  // namespace

void NearestItems::keep_columns(TupleTableSlot* slot) {
    const MinimalTuple tuple = form_minimal_tuple(columns_, slot->tts_values, slot->tts_isnull);
    attempt_or_raise([&] { begins_.push_back(rows_.size()); });
    rows_.append(tuple, tuple->t_len);
    constexpr std::uint8_t kNothing[MAXIMUM_ALIGNOF] = {};
    rows_.append(kNothing, MAXALIGN(tuple->t_len) - tuple->t_len);
}

void NearestItems::take(TupleTableSlot* slot, const NearestPlan& plan, RowPlaces& places) {
    slot_getallattrs(slot);
    const bool null = slot->tts_isnull[plan.columns];
    const int first_key = plan.columns + 1;
    if (keyed_) keys.keep_item(slot->tts_values + first_key, slot->tts_isnull + first_key, !null);
    if (null) {
        ++nulls_;
        return;
    }
    if (plan.columns > 0) keep_columns(slot);
    vectors.keep(Int64GetDatum(static_cast<int64>(vectors.size())),
                 {slot->tts_values + plan.columns, 1}, traits_of(plan),
                 origin_of(slot, plan, places));
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

void NearestItems::read(const NearestPlan& plan, EState* estate) {
    vectors.set_type(plan.distance.type);
    ItemReceiver to{};
    to.receiver = item_receiver(ItemReceiver::receive);
    to.items = this;
    to.plan = &plan;
    to.places = RowPlaces(plan.table);
    to.row_context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext row", ALLOCSET_DEFAULT_SIZES);

    statement_.start(plan, estate, &to.receiver);
    columns_ = statement_.columns();
    set_key_types(plan, statement_.all_columns());
    statement_.run();
    if (plan.table.known() && !has_row_versions(plan.table)) vectors.forget_row_versions();
    rows_.finish();
    if (keyed_) keys.end_items();
    vectors.end_rows(traits_of(plan));
    searchable_ = vectors.read_vectors_if_alike();
    statement_.end();
    MemoryContextDelete(to.row_context);
    measure(plan);
}

void NearestItems::get(std::size_t item, TupleTableSlot* row) const {
    if (columns_->natts == 0) return;
    get_columns(reinterpret_cast<const MinimalTupleData*>(rows_.data() + begins_[item]), columns_,
                row);
}

void NearestItems::release() {
    statement_.release();
    vectors.release();
    keys.release();
    rows_.release();
}

}  // namespace gputext
