#include "extension/planner/planner_run.hpp"

extern "C" {
#include "nodes/pg_list.h"
}

#include "extension/base/server_versions.hpp"

namespace gputext {
namespace {

struct PlannerRun {
    List* statements;  // of the nodes
};

PlannerRun* run_under_way = nullptr;

/// Of a plan that is finished: its nodes know tables by their places in the range table.
void depend_on(PlannedStmt* plan, const PlannedStmt* statement) {
    ListCell* cell;
    foreach (cell, statement->rtable) {
        const auto* const entry = static_cast<const RangeTblEntry*>(lfirst(cell));
        if (OidIsValid(entry->relid))
            plan->rtable = lappend(plan->rtable, entry_without_rights(entry));
    }
    plan->relationOids =
        list_concat_unique_oid(plan->relationOids, list_copy(statement->relationOids));
    plan->invalItems = list_concat_copy(plan->invalItems, statement->invalItems);
    plan->dependsOnRole = plan->dependsOnRole || statement->dependsOnRole;
    plan->transientPlan = plan->transientPlan || statement->transientPlan;
}

}  // namespace

PlannedStmt* plan_with_nodes(planner_hook_type plan, const PlannerCall& call) {
    PlannerRun* const around = run_under_way;
    PlannerRun run{};
    PlannedStmt* planned = nullptr;
    PG_TRY();
    {
        run_under_way = &run;
        planned = call_planner(plan, call);
    }
    PG_FINALLY();
    { run_under_way = around; }
    PG_END_TRY();
    ListCell* cell;
    foreach (cell, run.statements)
        depend_on(planned, static_cast<const PlannedStmt*>(lfirst(cell)));
    return planned;
}

bool may_have_nodes() {
    return run_under_way != nullptr;
}

void note_statement(PlannedStmt* statement) {
    run_under_way->statements = lappend(run_under_way->statements, statement);
}

}  // namespace gputext
