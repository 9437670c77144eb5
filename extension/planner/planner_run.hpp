// extension/planner/planner_run.hpp - a run of the planner, whose plan may have nodes that run
// statements of their own

#pragma once

#include "extension/base/postgres.hpp"
#include "extension/base/server_versions.hpp"

namespace gputext {

/// Calls `plan`. The plan that it makes depends on what the statements of its nodes depend on: a
/// cached plan locks their tables, and is planned again when one of them, or another object, has
/// changed.
PlannedStmt* plan_with_nodes(planner_hook_type plan, const PlannerCall& call);

/// Whether a plan of plan_with_nodes() is being made: no other may have such nodes.
bool may_have_nodes();
/// Notes the statement of a node of the plan that is being made.
void note_statement(PlannedStmt* statement);

}  // namespace gputext
