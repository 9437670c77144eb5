#include "extension/queries/row_columns.hpp"

extern "C" {
#include "access/table.h"
#include "nodes/makefuncs.h"
#include "parser/parsetree.h"
#include "utils/rel.h"
}

#include <algorithm>

namespace gputext {
namespace {

/// The places in its table of the columns that a scan picks; NIL for any other plan.
List* picked_columns(const Plan* plan) {
    if (!IsA(plan, SeqScan)) return NIL;
    List* places = NIL;
    const ListCell* cell;
    foreach (cell, plan->targetlist) {
        const auto* const column =
            reinterpret_cast<const Var*>(static_cast<const TargetEntry*>(lfirst(cell))->expr);
        if (!IsA(column, Var) || column->varattno <= 0) return NIL;
        places = lappend_int(places, column->varattno);
    }
    return places;
}

/// All columns of a scan's table, which the executor gives without an expression; NIL where it
/// would not, because rows may lack one.
List* all_columns(const PlannedStmt* statement, const Scan& scan) {
    const Relation table = table_open(rt_fetch(scan.scanrelid, statement->rtable)->relid, NoLock);
    const TupleDesc row = RelationGetDescr(table);
    List* columns = NIL;
    for (int i = 0; i < row->natts; ++i) {
        const FormData_pg_attribute* const column = TupleDescAttr(row, i);
        if (column->attisdropped || column->atthasmissing) {
            columns = NIL;
            break;
        }
        const auto place = static_cast<AttrNumber>(i + 1);
        Var* const value = makeVar(static_cast<int>(scan.scanrelid), place, column->atttypid,
                                   column->atttypmod, column->attcollation, 0);
        columns = lappend(columns,
                          makeTargetEntry(reinterpret_cast<Expr*>(value), place, nullptr, false));
    }
    table_close(table, NoLock);
    return columns;
}

}  // namespace

List* places_in_rows(const PlannedStmt* statement, Plan* plan) {
    // An Append hands on what its plans give it, whatever its own list of columns says.
    List* const scans =
        IsA(plan, Append) ? reinterpret_cast<Append*>(plan)->appendplans : list_make1(plan);
    List* const places = picked_columns(static_cast<Plan*>(linitial(scans)));
    List* columns = NIL;  // of each scan
    const ListCell* cell;
    foreach (cell, scans) {
        auto* const scan = static_cast<Scan*>(lfirst(cell));
        if (places == NIL || !equal(picked_columns(&scan->plan), places)) break;
        List* const all = all_columns(statement, *scan);
        if (all == NIL) break;
        columns = lappend(columns, all);
    }
    if (list_length(columns) < list_length(scans)) {
        List* own = NIL;
        for (int place = 1; place <= list_length(plan->targetlist); ++place)
            own = lappend_int(own, place);
        return own;
    }
    int number = 0;
    foreach (cell, scans)
        static_cast<Plan*>(lfirst(cell))->targetlist =
            static_cast<List*>(list_nth(columns, number++));
    return places;
}

RowColumns::RowColumns(const List* places) {
    const ListCell* cell;
    foreach (cell, places) {
        last_ = std::max(last_, lfirst_int(cell));
        places_[count_++] = lfirst_int(cell) - 1;
    }
}

}  // namespace gputext
