#include "extension/queries/whole_scan.hpp"

extern "C" {
#include "parser/parsetree.h"
}

namespace gputext {
namespace {

/// Whether a node hands on all rows that it gets.
bool gives_all(const Plan* plan) {
    return plan->qual == NIL && plan->initPlan == NIL;
}

/// The column of the node with that number, from 1, which is a plain one of what is below it; null
/// for any other.
const Var* plain_column(const Plan* plan, AttrNumber number) {
    if (number < 1 || number > list_length(plan->targetlist)) return nullptr;
    const auto* const entry =
        static_cast<const TargetEntry*>(list_nth(plan->targetlist, number - 1));
    if (entry->resno != number || entry->resjunk || !IsA(entry->expr, Var)) return nullptr;
    return reinterpret_cast<const Var*>(entry->expr);
}

/// The number in its table of a column of `top`, which is the scan or what gathers its rows;
/// InvalidAttrNumber for one that is no plain column of the table.
AttrNumber column_of_table(const Plan* top, const Plan* scan, AttrNumber number) {
    const Var* column = plain_column(top, number);
    if (column != nullptr && top != scan)
        column = static_cast<int>(column->varno) == OUTER_VAR ? plain_column(scan, column->varattno)
                                                              : nullptr;
    const Index table = reinterpret_cast<const Scan*>(scan)->scanrelid;
    if (column == nullptr || static_cast<Index>(column->varno) != table ||
        column->varlevelsup != 0 || column->varattno <= 0)
        return InvalidAttrNumber;
    return column->varattno;
}

}  // namespace

WholeScan whole_scan_of(const PlannedStmt* statement) {
    if (statement->commandType != CMD_SELECT || statement->hasModifyingCTE ||
        statement->utilityStmt != nullptr || statement->subplans != NIL ||
        statement->rowMarks != NIL)
        return {};
    const Plan* const top = statement->planTree;
    const Plan* const scan = IsA(top, Gather) ? outerPlan(top) : top;
    if (scan == nullptr || !IsA(scan, SeqScan) || !gives_all(top) || !gives_all(scan)) return {};
    const RangeTblEntry* const table =
        rt_fetch(reinterpret_cast<const Scan*>(scan)->scanrelid, statement->rtable);
    if (table->rtekind != RTE_RELATION) return {};
    const WholeScan found{table->relid, column_of_table(top, scan, 1),
                          column_of_table(top, scan, 2)};
    if (found.id == InvalidAttrNumber || found.value == InvalidAttrNumber) return {};
    return found;
}

}  // namespace gputext
