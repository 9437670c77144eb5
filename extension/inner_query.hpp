// extension/inner_query.hpp - runs the query in a text argument and hands its rows on
//
// Read-only, under the caller's snapshot and rights, so that row-level security holds, and to its
// end without a cursor, so that it may use parallel workers. Its first column is the row's id,
// where rows have ids.

#pragma once

#include "extension/postgres.hpp"

extern "C" {
#include "access/tupdesc.h"
}

namespace gputext {

struct InnerQuery {
    const char* sql;
    Oid id_type;  // InvalidOid where rows have none
    /// Where the argument id_type would stand, for those who need it.
    const char* id_type_place = "behind the inner query";
};

/// Takes in the rows of an inner query. Functions may raise errors.
class RowReceiver {
public:
    /// Before the first row, even when there is none.
    virtual void check_columns(TupleDesc columns) = 0;
    /// Whether a row with these nulls is left out: by default one whose second column is null.
    virtual bool left_out(const bool* nulls) const { return nulls[1]; }
    /// A row whose id, if it has one, is not null and that is not left out. The values need not
    /// outlive the call, nor does what is allocated during it.
    virtual void take_row(const Datum* values, const bool* nulls) = 0;
    /// How many rows were left out, at least one.
    virtual void report_nulls(int64 rows) = 0;

protected:
    ~RowReceiver() = default;
};

/// Runs the query to its end. Raises an error for a null id, an id of another type, a query that
/// writes or gives no rows, and whatever the receiver and the query itself raise.
void run_inner_query(const InnerQuery& query, RowReceiver& receiver);

/// The type of a column, without the domains over it.
Oid base_type_of_column(TupleDesc columns, int column);

}  // namespace gputext
