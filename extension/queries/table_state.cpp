#include "extension/queries/table_state.hpp"

extern "C" {
#include "access/transam.h"
#include "access/visibilitymap.h"
#include "access/xlog.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

#include <algorithm>

#include "extension/base/failure.hpp"

namespace gputext {
namespace {

/// To read more pages takes no less time than parallel workers need to scan the table.
constexpr std::size_t kMostPagesToRead = std::size_t{1} << 16;

/// A page of the visibility map, locked against changes.
class LockedMap {
public:
    bool has(BlockNumber page) const {
        return BufferIsValid(buffer_) && visibilitymap_pin_ok(page, buffer_);
    }
    /// Goes to the map's page of this page of the table; false where there is none.
    bool go_to(Relation table, BlockNumber page) {
        release();
        visibilitymap_get_status(table, page, &buffer_);
        if (BufferIsValid(buffer_)) LockBuffer(buffer_, BUFFER_LOCK_SHARE);
        return BufferIsValid(buffer_);
    }
    XLogRecPtr lsn() const { return BufferGetLSNAtomic(buffer_); }
    /// Of a page that this page of the map has.
    bool is_set(Relation table, BlockNumber page) { return VM_ALL_VISIBLE(table, page, &buffer_); }
    /// An error does the same.
    void release() {
        if (BufferIsValid(buffer_)) UnlockReleaseBuffer(buffer_);
        buffer_ = InvalidBuffer;
    }

private:
    Buffer buffer_ = InvalidBuffer;
};

}  // namespace

bool TableState::may_be_noted(Relation table) {
    if (removes_what_snapshots_see() || !ActiveSnapshotSet() ||
        GetActiveSnapshot()->snapshot_type != SNAPSHOT_MVCC)
        return false;
    const FormData_pg_class& form = *table->rd_rel;
    return (form.relkind == RELKIND_RELATION || form.relkind == RELKIND_MATVIEW) &&
           form.relam == HEAP_TABLE_AM_OID && form.relpersistence != RELPERSISTENCE_TEMP &&
           RelationGetRelid(table) >= FirstNormalObjectId && RelationIsScannable(table) &&
           !has_new_files(table);
}

void TableState::note(Relation table) {
    files_ = files_of(table);
    pages_ = RelationGetNumberOfBlocks(table);
    trusted_ = RelationNeedsWAL(table) && !RecoveryInProgress() &&
               !GetActiveSnapshot()->takenDuringRecovery;
    maps_.resize(0);
    unmarked_.resize(0);
    if (!trusted_) return;
    LockedMap map;
    bool has_map = false;
    for (BlockNumber page = 0; page < pages_; ++page) {
        if (!map.has(page)) {
            map.release();
            CHECK_FOR_INTERRUPTS();
            has_map = map.go_to(table, page);
            if (has_map) append_or_raise(maps_, MapPage{page, map.lsn()});
        }
        if (!has_map || !map.is_set(table, page)) append_or_raise(unmarked_, page);
    }
    map.release();
}

bool TableState::compare(const TableState& earlier) {
    pages_to_read_.resize(0);
    if (!same_files(files_, earlier.files_) || pages_ < earlier.pages_) return false;
    const bool trusted = trusted_ && earlier.trusted_;
    std::size_t map = 0, unmarked = 0, differing = 0;  // what is next of each
    bool same = false;                                 // the page of the map, as it was
    for (BlockNumber page = 0; page < pages_; ++page) {
        if (map < maps_.size() && maps_[map].begin == page) {
            CHECK_FOR_INTERRUPTS();
            same = trusted && map < earlier.maps_.size() && maps_[map].lsn == earlier.maps_[map].lsn;
            ++map;
        }
        const bool is_unmarked = unmarked < unmarked_.size() && unmarked_[unmarked] == page;
        const bool differs =
            differing < earlier.differing_.size() && earlier.differing_[differing] == page;
        unmarked += is_unmarked;
        differing += differs;
        if (same && !is_unmarked && !differs && page < earlier.pages_) continue;
        if (pages_to_read_.size() == kMostPagesToRead) return false;
        append_or_raise(pages_to_read_, page);
    }
    return true;
}

std::size_t TableState::memory() const {
    return maps_.size() * sizeof(MapPage) +
           (unmarked_.size() + differing_.size() + pages_to_read_.size()) * sizeof(BlockNumber);
}

}  // namespace gputext
