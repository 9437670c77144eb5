// extension/rows/table_scans.hpp - recognises a query that gives plain columns of all rows of
// tables, and reads these tables in parallel workers
//
// The executor hands on each row by itself, and rows of its own parallel workers go through queues
// to the session. Where a query does no more than read tables, workers of ours can read the tables'
// pages and do with the rows what has to be done, and only what is left of them reaches the
// session.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/relscan.h"
#include "access/tableam.h"
#include "nodes/plannodes.h"
#include "port/atomics.h"
}

#include <cstdint>

namespace gputext {

/// A table and the columns of it that a query gives.
struct TableScan {
    static constexpr int kMostColumns = 4;

    Oid relation;
    AttrNumber columns[kMostColumns];
    BlockNumber pages;
};

/// The tables that a query reads, of which processes take parts. Plain memory, to be shared.
struct TableScans {
    static constexpr int kMostScans = 256;

    int count = 0;  // 0 where the query is of another kind
    int columns = 0;
    std::uint64_t pages = 0;  // of all tables
    pg_atomic_uint64 taken;   // pages that processes have taken
    TableScan scans[kMostScans];
};

/// Fills `scans` where the plan is a scan of a whole table, or of several ones behind each other
/// (partitions, UNION ALL), without conditions, of at most kMostColumns plain columns, and workers
/// may read the tables: no temporary ones, and only those whose pages can be read by ranges. Says
/// nothing of rights. The tables are locked. False for any other plan.
bool find_table_scans(const PlannedStmt* statement, TableScans& scans);

/// One process' part of the work. Functions raise errors.
class TableScanReader {
public:
    explicit TableScanReader(TableScans& scans) : scans_(scans) {}

    /// The next row of the pages that this process takes: the values of the columns, and which of
    /// them are null, valid until the next call. False when all pages are taken.
    bool next(Datum* values, bool* nulls);
    /// To be called after next() has returned true for the last time, but not after an error.
    void close();

private:
    bool take_pages();
    void open(int scan);

    TableScans& scans_;
    int open_ = -1;  // the scan at work
    Relation relation_ = nullptr;
    TableScanDesc scan_ = nullptr;
    TupleTableSlot* slot_ = nullptr;
    AttrNumber last_column_ = 0;
};

}  // namespace gputext
