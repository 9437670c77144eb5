#include "extension/planner/item_statement.hpp"

extern "C" {
#include "access/htup_details.h"
#include "executor/executor.h"
#include "utils/snapmgr.h"
}

#include "extension/base/server_versions.hpp"

namespace gputext {
namespace {

void start_nothing(DestReceiver*, int, TupleDesc) {}
void shut_nothing_down(DestReceiver*) {}

}  // namespace

void ItemStatement::start(PlannedStmt* statement, EState* estate, DestReceiver* receiver) {
    statement_ = CreateQueryDesc(statement, estate->es_sourceText, estate->es_snapshot,
                                 InvalidSnapshot, receiver, estate->es_param_list_info,
                                 estate->es_queryEnv, estate->es_instrument);
    PushActiveSnapshot(estate->es_snapshot);
    ExecutorStart(statement_, 0);
}

void ItemStatement::run() {
    run_to_end(statement_);
    ExecutorFinish(statement_);
}

void ItemStatement::end() {
    PopActiveSnapshot();
    if (statement_->instrument_options == 0) release();
}

void ItemStatement::release() {
    if (statement_ == nullptr) return;
    ExecutorEnd(statement_);
    FreeQueryDesc(statement_);
    statement_ = nullptr;
}

TupleDesc columns_of_items(const NearestPlan& plan) {
    return ExecTypeFromTL(plan.items->planTree->targetlist);
}

DestReceiver item_receiver(bool (*receive)(TupleTableSlot*, DestReceiver*)) {
    DestReceiver receiver{};
    receiver.receiveSlot = receive;
    receiver.rStartup = start_nothing;
    receiver.rShutdown = shut_nothing_down;
    receiver.rDestroy = shut_nothing_down;
    receiver.mydest = DestNone;
    return receiver;
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
