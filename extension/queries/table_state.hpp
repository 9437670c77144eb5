// extension/queries/table_state.hpp - which pages of a table have the rows that they had
//
// A heap has a visibility map: a bit for each page, which is set while every snapshot in use sees
// all tuples of the page. A session that has scanned a table notes the LSN of each page of the map,
// and later reads the map alone: where the LSNs are the same, pages whose bit is set have the rows
// that a scan has found there. For a million rows that is one page of the map. Pages whose bit is
// not set are read again (rows_by_page.hpp).
//
// Why that is right. Let S be the snapshot of the scan, and t the time when the state of the table
// is noted, while S is still active. Let S' be the snapshot of a later statement, and t' the time
// when the state is compared, while S' is active.
//
//   1. What a snapshot sees on a page does not depend on the time at which the page is read:
//      pruning and VACUUM leave alone what a snapshot in use sees (but for old_snapshot_threshold:
//      no state is noted or compared then). At t the bit is set, so S sees all tuples that the page
//      has at t. So these are the tuples that the scan has found there, before t or after it.
//      At t' the bit is set, so S' sees all tuples that the page has at t'. This is what
//      index-only scans rely on, too.
//   2. Whoever inserts, updates or deletes a tuple of a page whose bit is set clears the bit,
//      in the same critical section, with the map's page locked. VACUUM sets it again, and gives
//      the map's page the LSN of the record that it writes for that (visibilitymap_set()). LSNs
//      only grow as long as the server runs. So where the bit is set at t and at t', and the page
//      of the map has the same LSN, the bit was set all the time, and the page's tuples are those
//      that it had. Two things do not clear the bit: locks of rows, freezing and hint bits, which
//      change no values and nothing that S' sees; and COPY FREEZE, which adds rows to a page whose
//      bit it has set itself. COPY FREEZE takes only a table to which its own (sub)transaction has
//      given new files, and nobody else reads these before its end: no state is noted or compared
//      of a table with new files of the own transaction. That leaves out, too, what wal_level =
//      minimal does not write to the WAL, so that it changes no LSN.
//   3. S sees no tuple beyond the pages that the table has at t: such pages are of later
//      transactions, and VACUUM cuts off no tuple that S sees. The same holds for S' and t'. Pages
//      that the table did not have at t are read, whether or not their bit is set. Where VACUUM has
//      cut pages off and others have come in their place, the bits of these were cleared with them,
//      and setting them changes the LSN. A table that has fewer pages is scanned.
//   4. What S' sees on a page whose bit is not set at t' is read there, as a scan does it. Where
//      the bit was not set at t, it is not set at t' either, as setting it changes the LSN.
//   5. All commands that give the table other files (VACUUM FULL, CLUSTER, TRUNCATE, SET TABLESPACE
//      and those that rewrite it) and all that change its definition (columns, types, defaults,
//      which rows of old may lack) send the table's invalidation message, by which the session
//      forgets its scans (remembered_scans.hpp), before they release the lock for which the
//      statement waits when its query is analysed. The files are compared as well.
//   6. A crash ends all sessions. A standby has snapshots that do not trust the bits: nothing is
//      noted or compared by them. Temporary and unlogged tables are left out, since changes to them
//      have no LSN.
//
// Beyond this lies what writes pages without the server's functions, and what breaks index-only
// scans.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/xlogdefs.h"
#include "storage/block.h"
#include "utils/relcache.h"
}

#include <cstddef>

#include "extension/base/growing_array.hpp"
#include "extension/base/server_versions.hpp"

namespace gputext {

/// The pages of a table at a time.
class TableState {
public:
    /// Whether states of the table may be noted and compared by the active snapshot.
    static bool may_be_noted(Relation table);

    /// Pages of a table whose state nobody has noted.
    static constexpr BlockNumber kAnyPages = InvalidBlockNumber;

    /// Notes the state of the table, which had so many pages when its state was noted before;
    /// false, and it is of no use, where too many pages would have to be read. O(pages), about
    /// 10 ns each. The table is locked. Raises errors: the state must not lie on the stack.
    bool note(Relation table, BlockNumber pages_before = kAnyPages);
    /// Whether the pages that are not to be read have the rows that they had at an earlier state,
    /// whose pages this one was noted with.
    bool follows(const TableState& earlier) const;

    BlockNumber pages() const { return pages_; }
    /// Pages that have to be read, ascending: the active snapshot may not see all of their tuples,
    /// or the table did not have them before.
    const GrowingArray<BlockNumber>& pages_to_read() const { return pages_to_read_; }
    std::size_t memory() const;

private:
    RelationFiles files_{};
    BlockNumber pages_ = 0;
    GrowingArray<XLogRecPtr> maps_;  // LSNs of the pages of the visibility map
    GrowingArray<BlockNumber> pages_to_read_;
};

}  // namespace gputext
