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

/// To read more pages takes no less time than to scan a table that is worth it.
constexpr std::size_t kMostPagesToRead = 1024;

template <class Value>
bool equal(const GrowingArray<Value>& a, const GrowingArray<Value>& b) {
    return std::equal(a.data(), a.data() + a.size(), b.data(), b.data() + b.size());
}

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
    if (RecoveryInProgress() || removes_what_snapshots_see() || !ActiveSnapshotSet()) return false;
    const Snapshot snapshot = GetActiveSnapshot();
    if (snapshot->snapshot_type != SNAPSHOT_MVCC || snapshot->takenDuringRecovery) return false;
    const FormData_pg_class& form = *table->rd_rel;
    return (form.relkind == RELKIND_RELATION || form.relkind == RELKIND_MATVIEW) &&
           form.relam == HEAP_TABLE_AM_OID && form.relpersistence == RELPERSISTENCE_PERMANENT &&
           RelationGetRelid(table) >= FirstNormalObjectId && RelationIsScannable(table) &&
           RelationNeedsWAL(table) && !has_new_files(table);
}

bool TableState::note(Relation table, BlockNumber pages_before) {
    files_ = files_of(table);
    pages_ = RelationGetNumberOfBlocks(table);
    maps_.resize(0);
    pages_to_read_.resize(0);
    LockedMap map;
    bool has_map = false;
    for (BlockNumber page = 0; page < pages_; ++page) {
        if (!map.has(page)) {
            map.release();
            CHECK_FOR_INTERRUPTS();
            has_map = map.go_to(table, page);
            if (has_map) append_or_raise(maps_, map.lsn());
        }
        if (has_map && page < pages_before && map.is_set(table, page)) continue;
        if (pages_to_read_.size() == kMostPagesToRead) {
            map.release();
            return false;
        }
        append_or_raise(pages_to_read_, page);
    }
    map.release();
    return true;
}

bool TableState::follows(const TableState& earlier) const {
    return same_files(files_, earlier.files_) && pages_ >= earlier.pages_ &&
           equal(maps_, earlier.maps_);
}

std::size_t TableState::memory() const {
    return maps_.size() * sizeof(XLogRecPtr) + pages_to_read_.size() * sizeof(BlockNumber);
}

}  // namespace gputext
