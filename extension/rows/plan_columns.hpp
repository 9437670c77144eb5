// extension/rows/plan_columns.hpp - what a node of a plan does with the rows and columns below it

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "nodes/plannodes.h"
#include "nodes/primnodes.h"
}

namespace gputext {

/// Whether a node hands on all rows that it gets.
inline bool gives_all(const Plan* plan) {
    return plan->qual == NIL && plan->initPlan == NIL;
}

/// The column of the node with that number, from 1, which is a plain one of what is below it; null
/// for any other.
inline const Var* plain_column(const Plan* plan, AttrNumber number) {
    if (number < 1 || number > list_length(plan->targetlist)) return nullptr;
    const auto* const entry =
        static_cast<const TargetEntry*>(list_nth(plan->targetlist, number - 1));
    if (entry->resno != number || entry->resjunk || !IsA(entry->expr, Var)) return nullptr;
    return reinterpret_cast<const Var*>(entry->expr);
}

}  // namespace gputext
