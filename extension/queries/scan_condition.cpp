#include "extension/queries/scan_condition.hpp"

extern "C" {
#include "utils/rel.h"
}

namespace gputext {

void ScanCondition::open(Relation table, List* conditions) {
    estate_ = CreateExecutorState();
    conditions_ = ExecPrepareQual(conditions, estate_);
    row_ = MakeSingleTupleTableSlot(RelationGetDescr(table), &TTSOpsHeapTuple);
}

bool ScanCondition::holds(HeapTuple row) {
    ExprContext* const context = GetPerTupleExprContext(estate_);
    ResetExprContext(context);
    context->ecxt_scantuple = row_;
    ExecStoreHeapTuple(row, row_, false);
    const bool holds = ExecQual(conditions_, context);
    ExecClearTuple(row_);
    return holds;
}

void ScanCondition::close() {
    ExecDropSingleTupleTableSlot(row_);
    FreeExecutorState(estate_);
}

}  // namespace gputext
