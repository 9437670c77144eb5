// extension/values/row_places.hpp - reads values where they lie, within the rows of a heap
//
// The session need not copy a value that lies within its row: the place of the row is enough, and
// parallel workers read the value from the server's buffers. The row stays where it is as long as
// the transaction holds the snapshot that it was found by: VACUUM and pruning leave alone what the
// snapshot sees (unless old_snapshot_threshold is set, until PostgreSQL 16: then no place is
// known), and whoever rewrites the table waits for the lock that the inner query holds until the
// transaction ends. No worker can read a temporary table. The two inner queries of one statement
// run by the same snapshot, so that the places of the first are good while the second runs.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/transam.h"
#include "storage/block.h"
#include "storage/buf.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"
}

#include <cstddef>

namespace gputext {

/// A shorter value, header included, is copied in less time than its row is found again.
inline constexpr std::size_t kWorthPlacing = 128;

/// A column of a row of a heap.
struct RowPlace {
    Oid relation = InvalidOid;
    AttrNumber attribute = InvalidAttrNumber;
    ItemPointerData row = {};

    bool known() const { return OidIsValid(relation); }
};

/// The row of a table that a value of an inner query is a column of, as far as it is known.
struct RowOrigin {
    TransactionId version = InvalidTransactionId;  // its raw xmin
    RowPlace place;  // only where the query was given the columns that tell it
    /// Whether of the value there is the header alone, which tells its size: to be read by place.
    bool value_in_row = false;
};

/// Fetches values in one process, a row at a time. Functions raise errors. To be closed when they
/// have not.
class PlacedRows {
public:
    /// The value, as its row has it: still to be detoasted. It is valid until the next call, and
    /// must not be null. What the reader needs is allocated in `context`, which outlives it.
    Datum at(const RowPlace& place, MemoryContext context);
    void close();

private:
    /// A table that is open, and the page of the row that was fetched last, which stays pinned:
    /// rows in the order of their ids often lie side by side.
    struct Open {
        Relation relation;
        Buffer buffer;
        BlockNumber block;
    };

    /// Tables that are open at a time, by their OIDs: partitions of one table, mostly.
    static constexpr std::size_t kTables = 16;

    static void close(Open& table);
    Open& open(Oid relation, MemoryContext context);
    static void turn_to(Open& table, BlockNumber block);

    Open tables_[kTables] = {};
};

}  // namespace gputext
