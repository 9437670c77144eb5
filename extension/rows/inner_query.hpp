// extension/rows/inner_query.hpp - runs the query in a text argument and hands its rows on
//
// Read-only, under the caller's snapshot and rights, so that row-level security holds, and to its
// end without a cursor, so that it may use parallel workers. Its first column is the row's id,
// where rows have ids. Ids of the integer types widen to bigint where bigint is wanted.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/transam.h"
#include "access/tupdesc.h"
}

#include <cstddef>
#include <memory>

#include "extension/rows/id_column.hpp"
#include "extension/rows/row_places.hpp"
#include "extension/rows/table_scans.hpp"

namespace gputext {

struct KeptVectors;

struct InnerQuery {
    const char* sql;
    Oid id_type;  // InvalidOid where rows have none
    IdTypePlace id_type_place = {};
    /// Which rows these are, as in " among the queries", where a call has several inner queries.
    const char* among = "";
};

/// The columns that a receiver takes.
struct WantedColumns {
    int fewest;          // at least 1
    int most;            // kAnyColumns where those behind are not looked at
    const char* detail;  // a sentence that says what they are, for errors

    static constexpr int kAnyColumns = PG_INT32_MAX;
};

/// What is known of an inner query before it runs.
struct InnerQueryTraits {
    bool ordered = false;  // it has an ORDER BY of its own
    /// Whether it calls nothing that may change tables while it runs: no function that is unsafe in
    /// parallel workers.
    bool parallel_safe = false;
};

/// Takes in the rows of an inner query. Functions may raise errors.
class RowReceiver {
public:
    /// Of the query that gives the rows; set before it runs.
    void set_query(const InnerQueryTraits& query) { query_ = query; }
    const InnerQueryTraits& query() const { return query_; }

    static constexpr int kNoColumn = -1;
    static constexpr int kLastColumn = -2;
    /// The column whose values' rows the receiver wants to know the versions and places of, counted
    /// from 0. To be answered before the columns are known.
    virtual int versioned_column() const { return kNoColumn; }
    /// Of the row that take_row() is called with next.
    void set_row(const RowOrigin& row) { row_ = row; }
    /// After the last row and before end_rows(): versions that were given may be wrong.
    virtual void forget_row_versions() {}

    /// Rows with fewer or more columns are refused before the other functions see them. A query
    /// may well give rows without columns: SELECT FROM docs.
    virtual WantedColumns wanted_columns() const = 0;
    /// Before the first row, even when there is none.
    virtual void check_columns(TupleDesc columns) = 0;
    /// Whether a row with these nulls is left out.
    virtual bool left_out(const bool* nulls) const = 0;
    /// A row whose id, if it has one, is not null and that is not left out. The values need not
    /// outlive the call, nor does what is allocated during it.
    virtual void take_row(const Datum* values, const bool* nulls) = 0;
    /// Whether rows without an order of their own may come in any: the receiver puts them into that
    /// of their ids. Values whose rows are known by place may then lack their bytes
    /// (RowOrigin::value_in_row). To be answered before the columns are known.
    virtual bool takes_any_order() const { return false; }
    /// Whether rows of two columns may come from an earlier scan. A receiver that says so leaves
    /// out the rows whose second column is null. To be answered before the columns are known.
    virtual bool takes_kept_rows() const { return false; }
    /// After check_columns(), in place of all from take_row() to end_rows(): as VectorRows::take().
    /// False, and nothing is taken, where that cannot be.
    virtual bool take_kept_rows(const std::shared_ptr<const KeptVectors>&) { return false; }
    /// After end_rows(): as VectorRows::copy().
    virtual void copy_rows(std::size_t, std::shared_ptr<const KeptVectors>&) const {}

    /// Whether the receiver may read tables by itself, in place of taking rows from the executor.
    virtual bool scans_tables() const { return false; }
    /// After check_columns(), in place of all take_row(): reads the tables. False, and nothing is
    /// taken, where it does not, or cannot.
    virtual bool scan(TableScans&) { return false; }

    /// After the last row. An error is raised as one of the query.
    virtual void end_rows() {}
    /// How many rows were left out, at least one.
    virtual void report_nulls(int64 rows, const char* among) = 0;

protected:
    ~RowReceiver() = default;

    /// In take_row(): where the value of versioned_column() comes from.
    const RowOrigin& row() const { return row_; }

private:
    InnerQueryTraits query_;
    RowOrigin row_;
};

/// Runs the query to its end. Raises an error for a null id, an id of another type, too few or too
/// many columns, a query that writes or gives no rows, and whatever the receiver and the query
/// itself raise.
void run_inner_query(const InnerQuery& query, RowReceiver& receiver);

}  // namespace gputext
