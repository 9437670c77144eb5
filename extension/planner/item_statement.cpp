#include "extension/planner/item_statement.hpp"

extern "C" {
#include "access/htup_details.h"
#include "executor/executor.h"
#include "utils/snapmgr.h"
}

#include "extension/base/server_versions.hpp"

namespace gputext {

void ItemStatement::start(const PlannedStmt* statement, EState* estate, int flags) {
    release();
    statement_ =
        CreateQueryDesc(const_cast<PlannedStmt*>(statement), estate->es_sourceText,
                        estate->es_snapshot, InvalidSnapshot, None_Receiver,
                        estate->es_param_list_info, estate->es_queryEnv, estate->es_instrument);
    standard_ExecutorStart(statement_,
                           flags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));
}

void ItemStatement::run(DestReceiver* receiver) {
    PushActiveSnapshot(statement_->estate->es_snapshot);
    statement_->dest = receiver;
    run_part_to_end(statement_);
    standard_ExecutorFinish(statement_);
}

void ItemStatement::end() {
    PopActiveSnapshot();
}

void ItemStatement::release() {
    if (statement_ == nullptr) return;
    const EState* const estate = statement_->estate;
    if (!estate->es_finished && (estate->es_top_eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
        standard_ExecutorFinish(statement_);
    standard_ExecutorEnd(statement_);
    FreeQueryDesc(statement_);
    statement_ = nullptr;
}

TupleDesc columns_of_items(const NearestPlan& plan) {
    return ExecTypeFromTL(plan.items->planTree->targetlist);
}

void get_columns(const MinimalTupleData* kept, TupleDesc columns, TupleTableSlot* row) {
    // The tuple's header begins before the minimal one, as minimal tuples are laid out for.
    HeapTupleData whole{};
    whole.t_len = kept->t_len + MINIMAL_TUPLE_OFFSET;
    whole.t_data = reinterpret_cast<HeapTupleHeader>(
        const_cast<char*>(reinterpret_cast<const char*>(kept)) - MINIMAL_TUPLE_OFFSET);
    heap_deform_tuple(&whole, columns, row->tts_values, row->tts_isnull);
}

}  // namespace gputext
