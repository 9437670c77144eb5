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

/// The item query, under the snapshot of the node's statement and with its parameters. It is a part
/// of that statement, as a subplan is: no other module sees it begin or end. start(), run() and
/// end() are to be called in this order. Functions raise errors.
class ItemStatement {
public:
    /// Makes `statement`, the item query's plan, ready to run; in the place of one that was made
    /// ready before. `flags` are those that the node begins with. EXECUTE on functions is checked.
    void start(const PlannedStmt* statement, EState* estate, int flags);
    /// The rows go to `receiver`, an ExecutedRows::destination(). The snapshot is the active one
    /// until end().
    void run(DestReceiver* receiver);
    void end();

    /// For EXPLAIN, whether it has run or not.
    QueryDesc* description() const { return statement_; }
    void release();

private:
    QueryDesc* statement_ = nullptr;
};

/// The columns of the item query, in the memory that is current.
TupleDesc columns_of_items(const NearestPlan& plan);

/// The columns of a row that was kept, into a slot of at least so many columns.
void get_columns(const MinimalTupleData* kept, TupleDesc columns, TupleTableSlot* row);

}  // namespace gputext
