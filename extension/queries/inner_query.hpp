// extension/queries/inner_query.hpp - runs the query in a text argument and hands its rows on
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
#include <span>

#include "extension/queries/row_reducer.hpp"
#include "extension/types/column_types.hpp"
#include "extension/values/row_places.hpp"

namespace gputext {

struct RememberedVectors;
struct RowChanges;
class ReducedRows;

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
    /// Whether it gives the same rows again under the same snapshot, as far as can be known: it
    /// calls nothing volatile, no aggregate but PostgreSQL's own, and draws no sample.
    bool repeatable = false;
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

/// Takes rows of an id, a vector and up to two keys, also from an earlier scan of a whole table.
/// Leaves out the rows whose second column is null.
class RepeatReceiver : public RowReceiver {
public:
    /// After check_columns(), in place of all from take_row() to end_rows(): as VectorRows::take().
    /// False, and nothing is taken, where that cannot be.
    virtual bool take_remembered(const std::shared_ptr<const RememberedVectors>& rows) = 0;
    /// The same with changes, for a receiver that can do with rows and their changes.
    virtual bool take_changed(const std::shared_ptr<const RememberedVectors>&, const RowChanges&) {
        return false;
    }
    /// Before the first row: places() will be asked for.
    virtual void keep_places() = 0;
    /// After end_rows(): where the rows lie in their table; fewer than there are where that is not
    /// known.
    virtual std::span<const ItemPointerData> places() const = 0;
    /// After end_rows(): as VectorRows::copy().
    virtual void copy_rows(std::size_t most,
                           std::shared_ptr<const RememberedVectors>& copied) const = 0;

protected:
    ~RepeatReceiver() = default;
};

/// Can do with what the processes of the query make of its rows.
class ReducingReceiver : public RowReceiver {
public:
    /// Whether reduction() may be asked for. To be answered before the columns are known.
    virtual bool may_reduce() const = 0;
    /// After check_columns(): what is to be made of the rows. The request lasts until the next call
    /// of another function.
    virtual RowReduction reduction() = 0;
    /// In place of all take_row().
    virtual void take_reduced(const ReducedRows& rows) = 0;

protected:
    ~ReducingReceiver() = default;
};

/// Runs the query to its end. Raises an error for a null id, an id of another type, too few or too
/// many columns, a query that writes or gives no rows, and whatever the receiver and the query
/// itself raise.
void run_inner_query(const InnerQuery& query, RowReceiver& receiver);
/// The same, but that a whole table which has not changed since an earlier statement is not read:
/// its rows may be remembered (remembered_scans.hpp).
void run_inner_query(const InnerQuery& query, RepeatReceiver& receiver);
/// The same, but that workers may reduce the rows (reduced_rows.hpp).
void run_inner_query(const InnerQuery& query, ReducingReceiver& receiver);

}  // namespace gputext
