// extension/planner/nearest_explain.hpp - what EXPLAIN shows of a node that finds nearest items

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "commands/explain.h"
#include "executor/execdesc.h"
#include "nodes/execnodes.h"

#if __has_include("commands/explain_format.h")
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif
}

#include <cstdint>

#include "extension/planner/nearest_plan.hpp"
#include "extension/planner/nearest_search.hpp"

namespace gputext {

/// What a run of the node has done so far.
struct NearestRun {
    std::uint64_t items = 0;
    bool remembered = false;     // the items
    std::uint64_t queries = 0;   // searched
    std::uint64_t ordinary = 0;  // outer rows that the ordinary query answered
    SearchCounts searches;
    double reading_ms = 0, searching_ms = 0;
};

/// `run` is null for a node that has not run. `items` is the item query, whether it has or not.
void explain_nearest(const NearestPlan& plan, CustomScanState* node, List* ancestors,
                     const NearestRun* run, QueryDesc* items, ExplainState* explain);

}  // namespace gputext
