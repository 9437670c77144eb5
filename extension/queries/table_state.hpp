// extension/queries/table_state.hpp - which pages of a table have the rows that they had
//
// A heap has a visibility map: a bit for each page, which is set while every snapshot in use sees
// all tuples of the page. A session that has scanned a table notes the LSN of each page of the map,
// and later reads the map alone: where the LSN of its page of the map is the same, a page whose bit
// is set has the rows that the scan has found there. For a million rows that is one page of the
// map. All other pages are read again (rows_by_page.hpp), which takes a few microseconds each:
// those whose bit is not set, those of a page of the map with another LSN, as after VACUUM, and all
// pages of a table whose map is not trusted.
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
//   4. What S' sees on a page that is read is read there, as a scan does it. Where the bit was not
//      set at t and the LSN is the same, it is not set at t' either, as setting it changes the LSN.
//   5. All commands that give the table other files (VACUUM FULL, CLUSTER, TRUNCATE, SET TABLESPACE
//      and those that rewrite it) and all that change its definition (columns, types, defaults,
//      which rows of old may lack) leave another definition (ScanDefinition in
//      remembered_scans.hpp) before they release the lock for which the statement waits when its
//      query is analysed. A standby does both in this order when it replays the commit. The files are
//      compared as well.
//   6. A crash ends all sessions. The map is not trusted where nothing in it tells of changes or
//      the snapshot does not rely on it: of unlogged tables, whose changes have no LSN, and by
//      snapshots of a standby, which may see less than the primary did when it set a bit. Then all
//      pages are read, so that 2 is not needed. Temporary tables are left out.
//   7. The state that is compared may take the place of the first one, with S' and t' in the place
//      of S and t. Of a page that it trusts from then on, S' has found the rows of the scan, by 1 to
//      4. Pages where S' has found others are read each time (set_differing()).
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
#include <utility>

#include "extension/base/growing_array.hpp"
#include "extension/base/server_versions.hpp"

namespace gputext {

/// The pages of a table at a time.
class TableState {
public:
    /// Whether states of the table may be noted and compared by the active snapshot.
    static bool may_be_noted(Relation table);

    /// Notes the state of the table. O(pages), about 10 ns each. The table is locked. Raises
    /// errors: the state must not lie on the stack.
    void note(Relation table);
    /// Finds out which pages have to be read, as they need not have the rows that they had at an
    /// earlier state. False where the table has other files or fewer pages, or the pages are too
    /// many. Raises errors.
    bool compare(const TableState& earlier);
    /// Before it takes the place of the earlier state: the pages, ascending, on which other rows
    /// were found than are remembered.
    void set_differing(GrowingArray<BlockNumber>&& pages) { differing_ = std::move(pages); }

    BlockNumber pages() const { return pages_; }
    /// After compare(): ascending.
    const GrowingArray<BlockNumber>& pages_to_read() const { return pages_to_read_; }
    /// Whether compare() with this state, if nothing changes, finds no page to read.
    bool needs_no_pages() const { return trusted_ && unmarked_.empty() && differing_.empty(); }
    /// After compare(): whether fewer pages would have to be read if this were the earlier state.
    bool needs_fewer_pages() const {
        return trusted_ && pages_to_read_.size() > unmarked_.size() + differing_.size();
    }
    std::size_t memory() const;

private:
    /// The pages that a page of the map is of begin there.
    struct MapPage {
        BlockNumber begin;
        XLogRecPtr lsn;
    };

    RelationFiles files_{};
    BlockNumber pages_ = 0;
    bool trusted_ = false;                 // the map
    GrowingArray<MapPage> maps_;           // in their order, none for those that the map has not
    GrowingArray<BlockNumber> unmarked_;   // whose bit is not set, where the map is trusted
    GrowingArray<BlockNumber> differing_;  // as set_differing() says
    GrowingArray<BlockNumber> pages_to_read_;
};

}  // namespace gputext
