#include "extension/index/constraint_check.hpp"

extern "C" {
#include "access/tableam.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

#include "extension/base/failure.hpp"
#include "extension/index/open_index.hpp"
#include "extension/index/options.hpp"
#include "extension/rows/text_arguments.hpp"

namespace gputext::index {

bool is_for_constraint(IndexScanDesc scan) {
    return scan->indexRelation->rd_index->indisexclusion && scan->heapRelation != nullptr &&
           scan->xs_snapshot->snapshot_type == SNAPSHOT_DIRTY;
}

/// Only searches that leave a row for it need all of this.
void ConstraintCheck::open() {
    fetch_ = table_index_fetch_begin(scan_->heapRelation);
    slot_ = table_slot_create(scan_->heapRelation, nullptr);
    info_ = BuildIndexInfo(scan_->indexRelation);
    executor_ = CreateExecutorState();
    const CharacterLengths& characters = open_index(scan_->indexRelation).characters();
    const double threshold = threshold_of(scan_->indexRelation);
    attempt_or_raise(
        [&] { check_.prepare(document_, characters, threshold, stop_on_interrupt()); });
}

bool ConstraintCheck::is_near(ItemPointerData row) {
    CHECK_FOR_INTERRUPTS();
    if (fetch_ == nullptr) open();
    SnapshotData snapshot;
    InitDirtySnapshot(snapshot);
    bool more = false, dead = false;
    if (!table_index_fetch_tuple(fetch_, &row, &snapshot, slot_, &more, &dead)) return false;
    GetPerTupleExprContext(executor_)->ecxt_scantuple = slot_;
    Datum values[INDEX_MAX_KEYS];
    bool nulls[INDEX_MAX_KEYS];
    FormIndexDatum(info_, slot_, executor_, values, nulls);
    bool near = false;
    if (!nulls[0]) {
        const MemoryContext outside = MemoryContextSwitchTo(GetPerTupleMemoryContext(executor_));
        const Bytes other = bytes_of(PG_DETOAST_DATUM_PACKED(values[0]));
        attempt_or_raise([&]() -> Status {
            const Result<bool> found = check_.is_near(other, stop_on_interrupt());
            if (found.ok()) near = *found;
            return found.status();
        });
        MemoryContextSwitchTo(outside);
    }
    ResetPerTupleExprContext(executor_);
    return near;
}

void ConstraintCheck::release() {
    if (fetch_ == nullptr) return;
    FreeExecutorState(executor_);
    ExecDropSingleTupleTableSlot(slot_);
    table_index_fetch_end(fetch_);
    fetch_ = nullptr;
}

}  // namespace gputext::index
