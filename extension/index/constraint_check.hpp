// extension/index/constraint_check.hpp - what an exclusion constraint compares a new document with
//
// Of a search for a constraint the executor would recheck rows by the operator, which knows nothing
// of the index and its threshold. So the access method rechecks them by itself: it fetches the row,
// forms its document as the index has it, and compares it at the index's threshold.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/relscan.h"
#include "nodes/execnodes.h"
}

#include "cpp/documents/near_duplicate_check.hpp"

namespace gputext::index {

/// Whether a search is one for an exclusion constraint: it sees what no query sees, rows of
/// transactions that have not ended.
bool is_for_constraint(IndexScanDesc scan);

/// Owns memory: made by make_owned(), in the memory context that its rows are fetched in.
class ConstraintCheck {
public:
    /// The document lives as long as this.
    ConstraintCheck(IndexScanDesc scan, Bytes document) : scan_(scan), document_(document) {}

    /// Whether the row is there, or may be when its transaction ends, and is near the document.
    /// Expressions run as whoever writes the new row, as the executor's own do.
    bool is_near(ItemPointerData row);

    /// Releases what it holds of the table; an error does that by itself.
    void release();

private:
    void open();

    IndexScanDesc scan_;
    Bytes document_;
    NearDuplicateCheck check_;
    // From the first row on:
    IndexFetchTableData* fetch_ = nullptr;
    TupleTableSlot* slot_ = nullptr;
    IndexInfo* info_ = nullptr;
    EState* executor_ = nullptr;
};

}  // namespace gputext::index
