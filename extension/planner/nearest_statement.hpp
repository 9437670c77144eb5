// extension/planner/nearest_statement.hpp - plans a statement that asks for the nearest items of
// one vector or text
//
//   SELECT id, e <=> $1 AS distance FROM base WHERE size > 3 ORDER BY e <=> $1 LIMIT 10
//
// Paths (nearest_path.hpp) are of subqueries. A statement that is sorted by a distance is planned
// as the only subquery of another, whose columns are the same; that plan is taken if it is the node
// of such a path, and gives rows in the order of the node. If it is not, the statement is planned
// as it stands.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "nodes/params.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
}

#include "extension/queries/row_bundle.hpp"

namespace gputext {

/// To be called once, when the library is loaded.
void offer_nearest_statements();

/// Plans a query that this file leaves as it stands; the subqueries in its FROM may have nodes of
/// their own. Changes the query, as the planner does.
PlannedStmt* plan_ordinarily(Query* query, ParamListInfo parameters);
/// The same of a query whose rows parallel workers bundle, which it does not change. Null where
/// that is of no use, and where `plain` gives fewer rows (bundle_plan.hpp).
PlannedStmt* plan_bundles(const Query* query, ParamListInfo parameters, const PlannedStmt& plain,
                          const BundledRows& rows, double fewest_rows);

}  // namespace gputext
