#include "extension/planner/nearest_statement.hpp"

extern "C" {
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "parser/parse_node.h"
#include "parser/parse_relation.h"
}

#include <cstring>

#include "extension/planner/nearest_plan.hpp"
#include "extension/planner/nearest_shape.hpp"
#include "extension/planner/planner_run.hpp"
#include "extension/queries/bundle_plan.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

/// A bit that no option of a cursor has: for queries that are to be planned as they stand.
constexpr int kAsItStands = 1 << 30;
constexpr int kOrdinarily = CURSOR_OPT_PARALLEL_OK | kAsItStands;

planner_hook_type plan_before = nullptr;

PlannedStmt* plan_as_before(const PlannerCall& call) {
    return plan_with_nodes(plan_before != nullptr ? plan_before : standard_planner, call);
}

/// The visible columns of the only relation, under the names that they have in the query.
List* columns_of(const Query* query) {
    List* columns = NIL;
    ListCell* cell;
    foreach (cell, query->targetList) {
        auto* const entry = static_cast<TargetEntry*>(lfirst(cell));
        if (entry->resjunk) continue;
        TargetEntry* const column = flatCopyTargetEntry(entry);
        column->expr = reinterpret_cast<Expr*>(makeVarFromTargetEntry(1, entry));
        column->resno = static_cast<AttrNumber>(list_length(columns) + 1);
        column->ressortgroupref = 0;
        columns = lappend(columns, column);
    }
    return columns;
}

/// SELECT nearest.* FROM (query) nearest, as the statement that the query is.
Query* select_from(const Query* query) {
    ParseState* const state = make_parsestate(nullptr);
    addRangeTableEntryForSubquery(state, static_cast<Query*>(copyObjectImpl(query)),
                                  makeAlias("nearest", NIL), false, true);
    RangeTblRef* const from = makeNode(RangeTblRef);
    from->rtindex = 1;
    Query* const outer = makeNode(Query);
    outer->commandType = CMD_SELECT;
    outer->querySource = query->querySource;
    outer->queryId = query->queryId;
    outer->canSetTag = query->canSetTag;
    outer->hasRowSecurity = query->hasRowSecurity;
    outer->rtable = state->p_rtable;
    outer->jointree = makeFromExpr(list_make1(from), nullptr);
    outer->targetList = columns_of(query);
    outer->stmt_location = query->stmt_location;
    outer->stmt_len = query->stmt_len;
    free_parsestate(state);
    return outer;
}

/// A cursor that says neither SCROLL nor NO SCROLL goes backward if its plan does, as a sort does
/// and the node does not.
int options_of_node(int options) {
    const bool of_cursor = (options & CURSOR_OPT_FAST_PLAN) != 0;
    return of_cursor && (options & CURSOR_OPT_NO_SCROLL) == 0 ? options | CURSOR_OPT_SCROLL
                                                              : options;
}

bool is_nearest_node(const Plan* plan) {
    if (IsA(plan, Material)) plan = outerPlan(plan);
    return IsA(plan, CustomScan) &&
           std::strcmp(reinterpret_cast<const CustomScan*>(plan)->methods->CustomName,
                       kNearestName) == 0;
}

PlannedStmt* plan_statement(const PlannerCall& call) {
    PlannerCall passed = call;
    if (plan_nearest() != PlanNearest::off && (call.options & kAsItStands) == 0 &&
        is_sorted_by_distance(call.query)) {
        passed.query = select_from(call.query);
        passed.options = options_of_node(call.options);
        PlannedStmt* const planned = plan_as_before(passed);
        if (is_nearest_node(planned->planTree)) return planned;
    }
    passed.query = call.query;
    passed.options = call.options & ~kAsItStands;
    return plan_as_before(passed);
}

}  // namespace

void offer_nearest_statements() {
    plan_before = planner_hook;
    planner_hook = as_planner_hook<plan_statement>;
}

PlannedStmt* plan_ordinarily(Query* query, ParamListInfo parameters) {
    return call_planner(planner, {query, "", kOrdinarily, parameters});
}

PlannedStmt* plan_bundles(const Query* query, ParamListInfo parameters, const PlannedStmt& plain,
                          const BundledRows& rows, double fewest_rows) {
    return bundle_plan({query, "", kOrdinarily, parameters}, plain, rows, kFewestBundlers,
                       fewest_rows)
        .statement;
}

}  // namespace gputext
