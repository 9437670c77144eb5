// extension/values/row_versions.hpp - which transaction made the row that a value comes from
//
// gputextd keeps values by their pointers (cpp/link/resident_values.hpp): database, TOAST table and
// value id or, of a value that lies within its row, database, table, place of the row and number of
// the column. All but the last may be given again. This is the rule by which a resident value is
// known to be the one that a row points to.
//
// A session keeps a value V with its horizon H: the xmin of the snapshot S by which it found the
// row and read V, as a full transaction id of 64 bits. That is the oldest transaction that was
// running when S was taken, in any database. Later a session finds a row with the same pointer, and
// knows `since`: the latest of the transactions that made
//
//   - the row version: its raw xmin,
//   - the version of the row of pg_class that describes the TOAST table, or the table, and
//   - the version of the row of pg_database that describes the database,
//
// each as the latest full id that it can stand for. V is used only if since < H.
//
// Why that is right. "Runs after S" means here that a transaction runs at some time after S was
// taken. It then either was running when S was taken or got its id later, and so its id is not
// below H: GetSnapshotData() takes the minimum over the ids of all databases' transactions,
// prepared ones included, and an id is in the shared array of running ones before a later id can be
// given out (GetNewTransactionId()). The id of a subtransaction is above that of its transaction.
// Two kinds of processes are not counted. Lazy VACUUM makes no row versions with its own id, but
// changes rows of catalogs in place. Logical decoding in a WAL sender makes none. On a standby the
// minimum is over KnownAssignedXids, which has an id from the moment when the standby sees it or a
// later one; ids of subtransactions that an overflow drops from it are above that of their
// transaction, which stays.
//
//   1. V is what the pointer means from the time at which it was read until S is given up, since
//      VACUUM leaves alone what S can see, and whoever empties or rewrites a table waits for the
//      lock that the inner query holds until its transaction ends.
//   2. Suppose that the pointer means another value V' when a session finds a row version R' with
//      it. V' was not stored before V was read: a number in use is not given out, dead values that
//      VACUUM has not removed included, and what the session's own snapshot sees of an earlier time
//      cannot have been removed either. So V' was stored later, by a transaction that runs after S.
//      R' was made together with V' or later, as an INSERT and an UPDATE store a value anew unless
//      it is that of the version before: by a transaction that runs after S, too, even where its id
//      is below that of the first. So if R' has the id of the transaction that made it as its xmin,
//      since >= H, and V is not used. The same holds for a place: V's row was there until S was
//      given up, so that R' came there later. And the values of a row version never change: UPDATE
//      makes another version, elsewhere, and ALTER TABLE, which may give rows a value that they do
//      not have, gives no column the number of another one.
//   3. The heap writes an xmin in heap_prepare_insert() and heap_update(), with the id of the
//      transaction; the recovery of both writes the same. R' has another xmin in these cases only:
//      - VACUUM FULL, CLUSTER and REPACK copy row versions as they are (rewrite_heap_tuple()), to
//        other places. They keep the numbers of values that the TOAST table has, but a value that
//        was not stored out of line before may now be, with a new number. They put new files in the
//        place of both tables', and for that update their rows of pg_class (swap_relation_files(),
//        by CatalogTupleUpdateWithInfo(), not in place). That, and each later update of the row,
//        was made by a transaction that runs after S: since >= H. The session sees that row or a
//        later version, since it got its lock on the table after the other had given its own up,
//        and a lock is got together with the messages that invalidate catalog caches.
//      - CREATE DATABASE copies files of another database, with catalogs and all, and may give the
//        database the OID of one that is gone. The row of pg_database was made by a transaction
//        that runs after S, as no database is dropped while a session is connected to it.
//      - pg_surgery and releases before 9.4 write FrozenTransactionId over the xmin. Ids that are
//        none of a transaction (0, 1, 2) count as the latest of all.
//      Freezing sets bits beside the xmin, and the raw xmin stays. COPY FREEZE and REFRESH
//      MATERIALIZED VIEW set those bits in rows with the id of their own transaction. What rewrites
//      a table by inserting its rows (ALTER TABLE, REFRESH MATERIALIZED VIEW), or into a TOAST
//      table of its own (REPACK CONCURRENTLY), gives them a new xmin or a new row of pg_class, as
//      does whatever moves a row to another partition. TRUNCATE, DROP and CREATE TABLE leave no
//      rows.
//   4. A raw xmin has 32 bits. The latest full id with these bits that is not above the next one to
//      be given out is the true one or a later one, and later is safe. The xmin of a snapshot is
//      less than 2^31 below the next id, so its full id is exact.
//   5. After a crash, transactions whose records had not reached the disk are undone, and their ids
//      come again; so do OIDs. Whatever was resident before is given up: each run of the server's
//      shared memory has a number of its own (server_run()). That covers pg_upgrade, pg_resetwal,
//      pg_rewind, recovery to another point, and unlogged tables. A standby that is promoted goes
//      on with ids above all that it has seen, and loses only transactions that were running. Its
//      unlogged tables cannot be read before.
//   6. old_snapshot_threshold (until PostgreSQL 16) lets VACUUM remove what S can see: nothing is
//      kept then.
//
// Beyond this lies C code that only a superuser can bring in: modules that write pages or xmins of
// their own, and operators of a type of ids that empty the table while its rows are put in order.
//
// How the xmin is found. The inner query, as it was analysed and rewritten, gets one more column:
// the system column xmin of the table that the value is a column of, beside the value, up through
// views and subqueries in FROM. For values within rows (row_places.hpp), and for rows that are
// remembered by page (rows_by_page.hpp), it gets the row's place, too: the system columns ctid and,
// of a table that has children or may get some meanwhile, tableoid. They are added only where that
// changes nothing else: no grouping, DISTINCT, set operation or set-returning function in a target
// list on the way, no use of a subquery's whole row, and a heap with all its children. Not for
// tables that are temporary, of a catalog, foreign, or of another access method, and not in
// sessions where another module offers scans or joins of its own, which may not have system
// columns. Nobody needs a right to see it, since the executor checks the columns that the parser
// noted, and policies of row-level security stay on the table.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "nodes/parsenodes.h"
#include "utils/plancache.h"
}

#include <cstdint>

#include "cpp/link/resident_values.hpp"
#include "extension/values/row_places.hpp"

namespace gputext {

/// Instead of a full transaction id: one that is not known, later than all.
inline constexpr std::uint64_t kUnknownTransaction = ValuePointer::never;

/// The table, with its children perhaps, that a value of each row is a column of.
struct VersionedTable {
    Oid relation = InvalidOid;
    bool with_children = false;
    AttrNumber attribute = InvalidAttrNumber;  // the column, in the table itself
    /// System columns that the query got: its last ones, xmin, ctid and tableoid in this order.
    int columns = 1;

    bool known() const { return OidIsValid(relation); }
    bool has_places() const { return columns > 1; }
    /// Whether rows say which table they are of.
    bool tells_children() const { return columns > 2; }
};

/// Adds system columns of the row that the values of this column are of, behind all columns of the
/// query. Not known where that cannot be done; the query then stays as it is. For a SELECT that was
/// prepared, and not yet planned, alone.
VersionedTable add_row_columns(CachedPlanSource& prepared, int column);
/// The same of a query that was rewritten, in the memory that is current.
VersionedTable add_row_columns(Query* query, int column);
/// Whether the query still has these columns. They are lost when the query is analysed again, after
/// a change of what it reads.
bool has_row_columns(const CachedPlanSource& prepared);
/// Whether each row of the table, and of its children, has a version. To be asked again after the
/// query, for children that came meanwhile.
bool has_row_versions(const VersionedTable& table);

/// Reads from the system columns of rows where values come from. Functions raise errors.
class RowOrigins {
public:
    /// Of rows that have no such columns: nothing is known of them.
    RowOrigins() = default;
    /// `first`: the first system column, counted from 0.
    RowOrigins(const VersionedTable& table, int first) : table_(table), first_(first) {}

    bool known() const { return table_.known(); }
    /// The origin of a row; `value_in_row` as in RowOrigin. Nothing is known where the system
    /// columns are null, as on the side of an outer join that has no row. Of a relation without
    /// places there is only the version.
    RowOrigin of(const Datum* values, const bool* nulls, bool value_in_row);

private:
    RowPlace place(Oid relation, ItemPointer row);

    VersionedTable table_;
    int first_ = 0;
    Oid last_ = InvalidOid;
    AttrNumber last_attribute_ = InvalidAttrNumber;  // in that relation; 0 where it has no places
};

/// The latest full transaction id that these 32 bits can stand for, where `next` is given out next.
/// kUnknownTransaction for an id of no transaction.
std::uint64_t latest_it_can_be(TransactionId id, std::uint64_t next);

/// H for what is read by the active snapshot; 0 where it must not be resident.
std::uint64_t horizon();

/// Finds `since` for rows of an inner query that has ended, while its locks are held.
class RowVersions {
public:
    RowVersions();

    /// kUnknownTransaction where it is not known.
    std::uint64_t since(TransactionId row, Oid table);

private:
    struct Known {
        Oid table;
        std::uint64_t since;  // of the table's row of pg_class
    };

    static constexpr std::size_t kTables = 64;

    std::uint64_t since_of(Oid table);

    std::uint64_t next_;
    std::uint64_t database_;  // since, of its row of pg_database
    Known known_[kTables] = {};
};

}  // namespace gputext
