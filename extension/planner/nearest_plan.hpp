// extension/planner/nearest_plan.hpp - what a plan's node knows, and how it is written into the
// plan

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "nodes/extensible.h"
#include "nodes/plannodes.h"
}

#include "extension/planner/distance_operators.hpp"
#include "extension/values/row_versions.hpp"

namespace gputext {

inline constexpr const char* kNearestName = "GputextNearest";

/// The node's only child is a nested loop, as the planner makes it of the outer plan and the
/// subquery's own. The node never runs the loop itself: it takes outer rows from the one side, and
/// has the other side answer those of them that it cannot. So the executor knows the subquery as
/// it is written: it checks the rights to its tables and functions, and locks what it reads.
///
/// Nodes are the plan's. As for NearestShape, but that a Var of OUTER_VAR has its place among the
/// columns of the outer plan.
struct NearestPlan {
    PlannedStmt* items;
    PlannedStmt* bundles;  // the item query again, whose workers bundle its rows; null for none
    List* shown;
    Expr* query;
    List* keys;    // of the outer row; the item query has its own behind its value
    Node* limit;   // null for none
    Node* offset;  // the same
    /// Of each column that is shown, its place in the rows of the subquery's own plan; 0 where that
    /// does not give it.
    List* ordinary;

    DistanceOperator distance;
    bool item_is_left;
    int columns;           // of the item query, before its vector or text
    bool outer_join;       // an outer row without items is given once, with nulls
    bool one_query;        // of all outer rows: it depends on none, and nor do keys
    bool parallel_safe;    // the item query, as InnerQueryTraits says
    VersionedTable table;  // of the item query's last columns, behind the keys
};

/// Whether the node's queries are all one, and its distances exact: they may be computed while
/// items come (nearest_of_one.hpp), and bundles of these have all values.
inline bool finds_of_one(const NearestPlan& plan) {
    return plan.one_query && plan.distance.exact;
}

/// BundledRows::value of the item query.
inline int bundled_value(const NearestPlan& plan) {
    return plan.table.known() && !finds_of_one(plan) ? plan.columns : -1;
}

/// For CustomScan::custom_private.
List* write_nearest_plan(const NearestPlan& plan);
NearestPlan read_nearest_plan(List* written);

/// The state of a node that executes such a plan.
Node* new_nearest_scan(CustomScan* scan);

}  // namespace gputext
