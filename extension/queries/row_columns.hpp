// extension/queries/row_columns.hpp - columns of a plan, read where they lie in the rows of tables
//
// The executor has a scan copy the columns that its query picks, by an expression that it
// interprets for each row. A reducer reads the rows without it: of 3.2 million rows of five
// columns, of which knn_merge reads four, three processes took 0.39 s of a processor in place of
// 0.47 s (medians of 9 runs of bench/sql_knn_merge's query, two cores that other work kept busy,
// 2026-11-26).

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "executor/tuptable.h"
#include "nodes/plannodes.h"
}

#include "extension/queries/row_bundle.hpp"

namespace gputext {

/// The places of the plan's columns in the rows that it gives, from 1. The plan is changed to give
/// the rows of its tables as they lie, where it is a scan of one, or appends such scans, and the
/// columns have the same places in all tables: its result has other columns then. The tables are
/// locked.
List* places_in_rows(const PlannedStmt* statement, Plan* plan);

/// Reads these columns, of which there are at most BundledRows::kMostColumns.
class RowColumns {
public:
    explicit RowColumns(const List* places);

    /// Valid as long as the row is.
    void read(TupleTableSlot* row) {
        slot_getsomeattrs(row, last_);
        for (int i = 0; i < count_; ++i) {
            values_[i] = row->tts_values[places_[i]];
            nulls_[i] = row->tts_isnull[places_[i]];
        }
    }
    const Datum* values() const { return values_; }
    const bool* nulls() const { return nulls_; }

private:
    int count_ = 0, last_ = 0;
    int places_[BundledRows::kMostColumns];  // from 0
    Datum values_[BundledRows::kMostColumns];
    bool nulls_[BundledRows::kMostColumns];
};

}  // namespace gputext
