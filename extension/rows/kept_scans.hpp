// extension/rows/kept_scans.hpp - a session keeps the rows of its scans of whole tables
//
// Where gputextd keeps the vectors of a table (resident_request.hpp), what a statement waits for is
// the scan that gives their pointers. So a session keeps, of scans of whole tables, the ids in
// their order and what gputextd calls the vectors' bytes. A later scan of a table that has not
// changed since (table_state.hpp) does not run: its rows are these, if gputextd still keeps the
// bytes.
//
// What is kept belongs to this session, in gputext.kept_scans of memory; the scan that was used
// longest ago goes first. A message that the table's definition or files have changed lets it be
// forgotten, whoever sends the message, and whether or not its transaction commits.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

#include "extension/rows/kept_vectors.hpp"
#include "extension/rows/table_state.hpp"
#include "extension/rows/whole_scan.hpp"

namespace gputext {

/// What a scan has given. Immutable once it is kept.
struct KeptScan {
    WholeScan scan;
    Oid id_type;  // that ids have been widened to
    TableState state;
    std::int64_t nulls = 0;  // rows that were left out, since their vectors are null
    std::shared_ptr<const KeptVectors> rows;

    std::size_t memory() const { return sizeof *this + state.memory() + rows->memory(); }
};

/// What is kept of such a scan; null for nothing. In the newest state that was kept.
std::shared_ptr<const KeptScan> kept_scan(const WholeScan& scan, Oid id_type) noexcept;

/// Keeps it in the place of what was kept of such a scan, if it fits in `most` bytes with others.
/// Throws std::bad_alloc.
void keep_scan(std::shared_ptr<const KeptScan> kept, std::size_t most);

/// Forgets the scans that were used longest ago, until all have at most so many bytes.
void forget_scans_beyond(std::size_t most) noexcept;

/// Forgets a scan, whose table has changed.
void forget_scan(const KeptScan& kept) noexcept;

/// To be called once, before any scan is kept: lets scans of changed tables be forgotten. Raises
/// errors.
void watch_tables();

}  // namespace gputext
