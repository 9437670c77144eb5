#include "extension/rows/table_scans.hpp"

extern "C" {
#include "access/table.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "parser/parsetree.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

#include <algorithm>

#include "extension/rows/plan_columns.hpp"

namespace gputext {
namespace {

/// Pages that a process takes at a time.
constexpr std::uint64_t kPagesAtOnce = 128;

/// Replaces the numbers of columns of the node by those of what is below it.
bool go_below(const Plan* plan, int columns, AttrNumber* numbers) {
    for (int i = 0; i < columns; ++i) {
        const Var* const column = plain_column(plan, numbers[i]);
        if (column == nullptr || static_cast<int>(column->varno) != OUTER_VAR) return false;
        numbers[i] = column->varattno;
    }
    return true;
}

bool is_readable(Oid relation, TableScan& scan) {
    const Relation table = table_open(relation, NoLock);
    const bool readable =
        (table->rd_rel->relkind == RELKIND_RELATION || table->rd_rel->relkind == RELKIND_MATVIEW) &&
        table->rd_rel->relpersistence != RELPERSISTENCE_TEMP && table->rd_tableam != nullptr &&
        table->rd_tableam->scan_set_tidrange != nullptr;
    if (readable) scan.pages = RelationGetNumberOfBlocks(table);
    table_close(table, NoLock);
    return readable;
}

bool add_scan(const PlannedStmt* statement, const Plan* plan, const AttrNumber* numbers,
              TableScans& scans) {
    if (!IsA(plan, SeqScan) || !gives_all(plan) || scans.count == TableScans::kMostScans)
        return false;
    const Index table = reinterpret_cast<const Scan*>(plan)->scanrelid;
    const RangeTblEntry* const entry = rt_fetch(table, statement->rtable);
    if (entry->rtekind != RTE_RELATION) return false;
    TableScan& scan = scans.scans[scans.count];
    scan.relation = entry->relid;
    for (int i = 0; i < scans.columns; ++i) {
        const Var* const column = plain_column(plan, numbers[i]);
        if (column == nullptr || static_cast<Index>(column->varno) != table ||
            column->varlevelsup != 0 || column->varattno <= 0)
            return false;
        scan.columns[i] = column->varattno;
    }
    if (!is_readable(entry->relid, scan)) return false;
    scans.pages += scan.pages;
    ++scans.count;
    return true;
}

bool add_scans(const PlannedStmt* statement, const Plan* plan, AttrNumber* numbers,
               TableScans& scans) {
    if (IsA(plan, Gather)) {
        if (!gives_all(plan) || !go_below(plan, scans.columns, numbers)) return false;
        plan = outerPlan(plan);
    }
    if (!IsA(plan, Append)) return add_scan(statement, plan, numbers, scans);
    if (!gives_all(plan) || !go_below(plan, scans.columns, numbers)) return false;
    const ListCell* cell;
    foreach (cell, reinterpret_cast<const Append*>(plan)->appendplans)
        if (!add_scan(statement, static_cast<const Plan*>(lfirst(cell)), numbers, scans))
            return false;
    return true;
}

int plain_columns_of(const Plan* plan) {
    int columns = 0;
    const ListCell* cell;
    foreach (cell, plan->targetlist) columns += !static_cast<TargetEntry*>(lfirst(cell))->resjunk;
    return columns;
}

}  // namespace

bool find_table_scans(const PlannedStmt* statement, TableScans& scans) {
    scans.count = 0;
    scans.pages = 0;
    pg_atomic_init_u64(&scans.taken, 0);
    if (statement->commandType != CMD_SELECT || statement->hasModifyingCTE ||
        statement->utilityStmt != nullptr || statement->subplans != NIL ||
        statement->rowMarks != NIL)
        return false;
    scans.columns = plain_columns_of(statement->planTree);
    if (scans.columns > TableScan::kMostColumns) return false;
    AttrNumber numbers[TableScan::kMostColumns];
    for (int i = 0; i < scans.columns; ++i) numbers[i] = static_cast<AttrNumber>(i + 1);
    if (add_scans(statement, statement->planTree, numbers, scans)) return true;
    scans.count = 0;
    return false;
}

// ---- Reading ----

void TableScanReader::open(int scan) {
    const TableScan& table = scans_.scans[scan];
    relation_ = table_open(table.relation, AccessShareLock);
    slot_ = table_slot_create(relation_, nullptr);
    last_column_ = *std::max_element(table.columns, table.columns + scans_.columns);
    open_ = scan;
}

void TableScanReader::close() {
    if (scan_ != nullptr) table_endscan(scan_);
    if (slot_ != nullptr) ExecDropSingleTupleTableSlot(slot_);
    // The lock stays until the end of the transaction, or of the worker.
    if (relation_ != nullptr) table_close(relation_, NoLock);
    scan_ = nullptr;
    slot_ = nullptr;
    relation_ = nullptr;
    open_ = -1;
}

/// A range of pages never reaches beyond a table's end.
bool TableScanReader::take_pages() {
    CHECK_FOR_INTERRUPTS();
    std::uint64_t begin = pg_atomic_fetch_add_u64(&scans_.taken, kPagesAtOnce);
    int number = 0;
    while (number < scans_.count) {
        // Each table's pages are counted up to a whole number of ranges.
        const std::uint64_t pages = scans_.scans[number].pages;
        const std::uint64_t ranges = (pages + kPagesAtOnce - 1) / kPagesAtOnce;
        if (begin < ranges * kPagesAtOnce) break;
        begin -= ranges * kPagesAtOnce;
        ++number;
    }
    if (number != open_) close();
    if (number == scans_.count) return false;
    if (open_ < 0) open(number);
    const std::uint64_t end =
        std::min<std::uint64_t>(begin + kPagesAtOnce, scans_.scans[number].pages);
    ItemPointerData first, last;
    ItemPointerSet(&first, static_cast<BlockNumber>(begin), FirstOffsetNumber);
    ItemPointerSet(&last, static_cast<BlockNumber>(end - 1), MaxOffsetNumber);
    if (scan_ == nullptr)
        scan_ = table_beginscan_tidrange(relation_, GetActiveSnapshot(), &first, &last);
    else
        table_rescan_tidrange(scan_, &first, &last);
    return true;
}

bool TableScanReader::next(Datum* values, bool* nulls) {
    while (scan_ == nullptr || !table_scan_getnextslot_tidrange(scan_, ForwardScanDirection, slot_))
        if (!take_pages()) return false;
    slot_getsomeattrs(slot_, last_column_);
    const AttrNumber* const columns = scans_.scans[open_].columns;
    for (int i = 0; i < scans_.columns; ++i) {
        values[i] = slot_->tts_values[columns[i] - 1];
        nulls[i] = slot_->tts_isnull[columns[i] - 1];
    }
    return true;
}

}  // namespace gputext
