#include "extension/queries/table_state.hpp"

extern "C" {
#include "access/transam.h"
#include "access/visibilitymap.h"
#include "access/xlog.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_class.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

#include <algorithm>

#include "extension/base/failure.hpp"

namespace gputext {
namespace {

/// New pages beyond which a table is not worth a look: each is read.
constexpr std::size_t kMostNewPages = 1024;

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

/// Whether it has never had a tuple.
bool is_new(Relation table, BlockNumber page) {
    const Buffer buffer = ReadBuffer(table, page);
    LockBuffer(buffer, BUFFER_LOCK_SHARE);
    const bool is_new = PageIsNew(BufferGetPage(buffer));
    UnlockReleaseBuffer(buffer);
    return is_new;
}

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

bool TableState::note(Relation table) {
    files_ = files_of(table);
    pages_ = RelationGetNumberOfBlocks(table);
    maps_.resize(0);
    new_pages_.resize(0);
    LockedMap map;
    bool has_map = false;
    for (BlockNumber page = 0; page < pages_; ++page) {
        if (!map.has(page)) {
            map.release();
            CHECK_FOR_INTERRUPTS();
            has_map = map.go_to(table, page);
            if (has_map) append_or_raise(maps_, map.lsn());
        }
        if (has_map && map.is_set(table, page)) continue;
        if (new_pages_.size() == kMostNewPages) {
            map.release();
            return false;
        }
        append_or_raise(new_pages_, page);
    }
    map.release();
    for (std::size_t i = 0; i < new_pages_.size(); ++i)
        if (!is_new(table, new_pages_[i])) return false;
    return true;
}

bool TableState::same_as(const TableState& other) const {
    return same_files(files_, other.files_) && pages_ == other.pages_ &&
           equal(maps_, other.maps_) && equal(new_pages_, other.new_pages_);
}

std::size_t TableState::memory() const {
    return maps_.size() * sizeof(XLogRecPtr) + new_pages_.size() * sizeof(BlockNumber);
}

}  // namespace gputext
