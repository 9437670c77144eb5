// extension/planner/item_statement.hpp - runs the item query of a node

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "executor/execdesc.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
#include "tcop/dest.h"
}

#include "extension/planner/nearest_plan.hpp"

namespace gputext {

/// The item query, under the snapshot of the node's statement and with its parameters. start(),
/// run() and end() are to be called once each, in this order. Functions raise errors.
class ItemStatement {
public:
    /// Runs `statement`, the item query's plan, whose rows go to `receiver`. The snapshot is the
    /// active one until end().
    void start(PlannedStmt* statement, EState* estate, DestReceiver* receiver);
    void run();
    void end();

    /// The statement that has run, for EXPLAIN ANALYZE; null where nobody asks.
    QueryDesc* finished() const { return statement_; }
    void release();

private:
    QueryDesc* statement_ = nullptr;
};

/// The columns of the item query, in the memory that is current.
TupleDesc columns_of_items(const NearestPlan& plan);

/// A receiver that calls the function for each row, which says whether it wants more.
DestReceiver item_receiver(bool (*receive)(TupleTableSlot*, DestReceiver*));

/// The columns of a row that was kept, into a slot of at least so many columns.
void get_columns(const MinimalTupleData* kept, TupleDesc columns, TupleTableSlot* row);

}  // namespace gputext
