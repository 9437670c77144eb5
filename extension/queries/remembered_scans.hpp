// extension/queries/remembered_scans.hpp - the scans of whole tables that a session remembers
//
// Where the vectors of a table are resident in gputextd (resident_request.hpp), what a statement
// waits for is the scan that gives their pointers. So a session remembers, of scans of whole
// tables, with a condition or without one, the ids in their order and what gputextd calls the
// vectors' bytes. A later scan of a table that has not changed since (table_state.hpp) does not
// run: its rows are these, if the bytes are still resident. Where some pages may have changed, their
// rows are read (rows_by_page.hpp).
//
// Remembered scans belong to one session, and take up to gputext.scan_memory of its memory; the one
// that was used longest ago is forgotten first. A scan is also forgotten where the table's definition
// has changed when it is asked for again.

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

/// What a scan has asked for: the table as it was defined, and the conditions. In memory of its own.
///
/// The definition is the version of the table's row of pg_class, and its columns. A command that
/// gives the table other files makes another version of that row, whose xmin is that of its
/// transaction, and one that changes columns, their types, or the values that rows of old lack,
/// changes the columns' descriptions. VACUUM and ANALYZE, which write what they have counted into the
/// row in place, change neither. The session sees both as they are, as it has got its lock on the
/// table after whoever has changed them has given up his.
class ScanDefinition {
public:
    /// Raises errors: it must not lie on the stack.
    void keep(Relation table, const List* conditions);
    ~ScanDefinition();
    ScanDefinition() = default;
    ScanDefinition(const ScanDefinition&) = delete;
    ScanDefinition& operator=(const ScanDefinition&) = delete;

    /// Whether the table is still defined so. It is locked. Raises errors.
    bool holds(Relation table) const;
    List* conditions() const { return conditions_; }
    std::size_t memory() const { return memory_; }

private:
    MemoryContext context_ = nullptr;
    TransactionId version_ = InvalidTransactionId;  // of the row of pg_class
    ItemPointerData place_{};                       // the same
    TupleDesc columns_ = nullptr;
    List* conditions_ = NIL;
    std::size_t memory_ = 0;
};

/// What a scan has given. Immutable once it is remembered.
struct RememberedScan {
    WholeScan scan;
    std::shared_ptr<const ScanDefinition> definition;  // has the conditions of `scan`
    Oid id_type = InvalidOid;                          // that ids have been widened to
    TableState state;
    std::shared_ptr<const RowsByPage> by_page;  // null where there is no memory for it
    std::int64_t nulls = 0;  // rows that were left out, since their vectors are null
    std::shared_ptr<const RememberedVectors> rows;

    std::size_t memory() const {
        return sizeof *this + state.memory() + (by_page == nullptr ? 0 : by_page->memory()) +
               rows->memory() + definition->memory();
    }
};

/// The newest such scan, with ids of that type; null for none. Raises errors.
std::shared_ptr<const RememberedScan> remembered_scan(const WholeScan& scan, Oid id_type);
/// The same with any ids, where it is known where the rows lie.
std::shared_ptr<const RememberedScan> remembered_rows(const WholeScan& scan);

/// Remembers it in the place of an earlier one of its kind, if it fits in `most` bytes with others.
/// Throws std::bad_alloc.
void remember_scan(std::shared_ptr<const RememberedScan> scan, std::size_t most);

/// Forgets the scans that were used longest ago, until all have at most so many bytes.
void forget_scans_beyond(std::size_t most) noexcept;

/// Forgets a scan, whose table has changed.
void forget_scan(const RememberedScan& scan) noexcept;

}  // namespace gputext
