#include "extension/queries/executed_rows.hpp"

extern "C" {
#include "executor/tuptable.h"
#include "utils/memutils.h"
}

namespace gputext {
namespace {

void end_nothing(DestReceiver*) {}

}  // namespace

ExecutedRows::ExecutedRows(RowTaker& taker)
    : taker_(taker),
      row_context_(
          AllocSetContextCreate(CurrentMemoryContext, "gputext row", ALLOCSET_DEFAULT_SIZES)) {
    receiver_.rows = this;
    receiver_.functions.receiveSlot = receive;
    receiver_.functions.rStartup = begin;
    receiver_.functions.rShutdown = end_nothing;
    receiver_.functions.rDestroy = end_nothing;
    receiver_.functions.mydest = DestNone;
}

void ExecutedRows::open_bundles(TupleDesc columns, int value) {
    bundled_columns_ = columns;
    bundle_.emplace(columns, value);
    receiver_.functions.receiveSlot = receive_bundle;
}

void ExecutedRows::begin(DestReceiver* receiver, int, TupleDesc columns) {
    ExecutedRows& rows = of(receiver);
    rows.taker_.begin(rows.bundle_ ? rows.bundled_columns_ : columns);
}

bool ExecutedRows::take(Datum* values, const bool* nulls, bool value_in_row) {
    const MemoryContext before = MemoryContextSwitchTo(row_context_);
    const bool more = taker_.take({values, nulls, origins_.of(values, nulls, value_in_row)});
    MemoryContextSwitchTo(before);
    MemoryContextReset(row_context_);
    return more;
}

bool ExecutedRows::receive(TupleTableSlot* slot, DestReceiver* receiver) {
    slot_getallattrs(slot);
    return of(receiver).take(slot->tts_values, slot->tts_isnull, false);
}

bool ExecutedRows::receive_bundle(TupleTableSlot* slot, DestReceiver* receiver) {
    ExecutedRows& rows = of(receiver);
    BundleReader& bundle = *rows.bundle_;
    Datum values[BundledRows::kMostColumns];
    bool nulls[BundledRows::kMostColumns];
    slot_getallattrs(slot);
    bundle.open(slot->tts_values[0]);
    while (bundle.next(values, nulls))
        if (!rows.take(values, nulls, bundle.value_is_in_row())) return false;
    return true;
}

void ExecutedRows::end() {
    MemoryContextDelete(row_context_);
}

}  // namespace gputext
