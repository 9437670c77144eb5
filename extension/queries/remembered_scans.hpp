// extension/queries/remembered_scans.hpp - the scans of whole tables that a session remembers
//
// Where the vectors of a table are resident in gputextd (resident_request.hpp), what a statement
// waits for is the scan that gives their pointers. So a session remembers, of scans of whole
// tables, the ids in their order and what gputextd calls the vectors' bytes. A later scan of a
// table that has not changed since (table_state.hpp) does not run: its rows are these, if the bytes
// are still resident. Where some pages may have changed, their rows are read (rows_by_page.hpp).
//
// Remembered scans belong to one session, and take up to gputext.scan_memory of its memory; the one
// that was used longest ago is forgotten first. A scan is also forgotten at a message that the
// table's definition or files have changed, whoever sends it, and whether or not its transaction
// commits.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

#include "extension/queries/remembered_vectors.hpp"
#include "extension/queries/rows_by_page.hpp"
#include "extension/queries/table_state.hpp"
#include "extension/queries/whole_scan.hpp"

namespace gputext {

/// What a scan has given. Immutable once it is remembered.
struct RememberedScan {
    WholeScan scan;
    Oid id_type;  // that ids have been widened to
    TableState state;
    RowsByPage by_page;      // not known where there is no memory for it
    std::int64_t nulls = 0;  // rows that were left out, since their vectors are null
    std::shared_ptr<const RememberedVectors> rows;

    std::size_t memory() const {
        return sizeof *this + state.memory() + by_page.memory() + rows->memory();
    }
};

/// The newest such scan, with ids of that type; null for none.
std::shared_ptr<const RememberedScan> remembered_scan(const WholeScan& scan, Oid id_type) noexcept;

/// Remembers it in the place of an earlier one of its kind, if it fits in `most` bytes with others.
/// Throws std::bad_alloc.
void remember_scan(std::shared_ptr<const RememberedScan> scan, std::size_t most);

/// Forgets the scans that were used longest ago, until all have at most so many bytes.
void forget_scans_beyond(std::size_t most) noexcept;

/// Forgets a scan, whose table has changed.
void forget_scan(const RememberedScan& scan) noexcept;

/// To be called once, before any scan is remembered: lets scans of changed tables be forgotten.
/// Raises errors.
void watch_tables();

}  // namespace gputext
