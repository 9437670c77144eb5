// extension/index/cost.hpp - what the planner is told of a search

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "nodes/pathnodes.h"
}

namespace gputext::index {

/// The part of a table's rows that is expected to be near a document.
inline constexpr double kNearSelectivity = 1e-5;

/// For the planner: amcostestimate of index access methods.
void estimate_cost(PlannerInfo* root, IndexPath* path, double loop_count, Cost* startup_cost,
                   Cost* total_cost, Selectivity* selectivity, double* correlation, double* pages);

}  // namespace gputext::index
