// extension/queries/rows_by_page.hpp - finds the rows that a table has gained and lost since a scan
//
// A session that remembers a scan (remembered_scans.hpp) also remembers on which page, and at which
// line of it, each row was found. Later it reads the pages that may have changed
// (table_state.hpp), with the snapshot S' of then, as a scan would. A tuple that S' sees there is a
// row that the scan has found if the scan has found one at that line, and the transaction that made
// the tuple is older than the horizon H: the oldest transaction that was running when the snapshot
// S of the scan was taken (horizon() in row_versions.hpp). All other rows of the page are gone, and
// all other tuples are new rows.
//
// Why that is right. The transaction had ended when S was taken, so it has put no tuple anywhere
// since: this one lay at its line when the scan came by, and a line has one tuple at a time. A
// tuple that was made before keeps its values: an update makes another one, and what gives a table
// other files or another definition has the session forget the scan. The xmin of a tuple stays what
// it is, or is that of no transaction, as row_versions.hpp says; in the second case the tuple is
// taken for a new row. S' may be older than S, as that of a cursor is. It does not matter here what
// S sees, but only what the scan has found. Nothing of this is about LSNs or the visibility map, so
// it holds for any page of any heap, on a standby, too.
//
// A scan with a condition (whole_scan.hpp) leaves rows out. Where they lie is found as soon as it
// has ended: what S sees on the pages at lines where the scan has found nothing. Of such a tuple
// the same holds, and so does the condition, which depends on its values alone. A new tuple is
// asked the condition.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/htup.h"
#include "storage/block.h"
#include "storage/itemptr.h"
#include "storage/off.h"
#include "utils/relcache.h"
}

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "extension/base/growing_array.hpp"
#include "extension/queries/table_state.hpp"

namespace gputext {

/// Where the rows of a scan were found. Functions raise errors.
class RowsByPage {
public:
    /// In the place of a row's number: one that the scan left out since its vector is null, or by
    /// its condition.
    static constexpr std::uint32_t kNull = UINT32_MAX, kLeftOut = UINT32_MAX - 1;

    struct Row {
        std::uint32_t number;
        OffsetNumber line;
    };

    struct Places {
        std::span<const ItemPointerData> rows;  // in the order of their numbers
        std::span<const ItemPointerData> nulls, left_out;
    };

    /// In a table of so many pages. `horizon` is that of the snapshot. Not known() after it where a
    /// place lies beyond the pages, or there are too many rows to be numbered.
    void set(const Places& places, BlockNumber pages, std::uint64_t horizon);

    bool known() const { return !begins_.empty(); }
    std::uint64_t horizon() const { return horizon_; }
    std::size_t memory() const {
        return begins_.size() * sizeof *begins_.data() + numbers_.size() * sizeof *numbers_.data() +
               lines_.size() * sizeof *lines_.data();
    }
    /// Where the rows lie, of which places_of_rows() is one by its number. O(rows).
    void places_of_rows(GrowingArray<ItemPointerData>& places) const;

    // Those of a page are numbers [begin(page), end(page)); of one that the table did not have,
    // there are none.
    std::size_t begin(BlockNumber page) const { return begins_[at(page)]; }
    std::size_t end(BlockNumber page) const { return begins_[at(page + 1)]; }
    Row operator[](std::size_t i) const { return {numbers_[i], lines_[i]}; }

private:
    std::size_t at(BlockNumber page) const {
        return std::min<std::size_t>(page, begins_.size() - 1);
    }

    std::uint64_t horizon_ = 0;
    GrowingArray<std::uint32_t> begins_;  // of each page, and the end
    GrowingArray<std::uint32_t> numbers_;
    GrowingArray<OffsetNumber> lines_;
};

/// The condition of a scan.
class RowCondition {
public:
    /// Raises the errors of its expressions.
    virtual bool holds(HeapTuple row) = 0;

protected:
    ~RowCondition() = default;
};

/// How the rows of a table differ from those that a scan has found.
struct TableChanges {
    GrowingArray<std::uint32_t> removed;  // numbers of rows, in no order
    std::uint32_t removed_nulls = 0;      // rows that the scan left out
    GrowingArray<HeapTuple> added;        // in the memory that was current
    GrowingArray<BlockNumber> pages;      // where they were found, ascending
};

/// Reads the pages that have to be read, by the active snapshot. False where there are too many
/// changes to go on with. `condition` is null for none. The table is locked. Raises errors: the
/// changes must not lie on the stack.
bool find_changes(Relation table, const TableState& now, const RowsByPage& earlier,
                  RowCondition* condition, TableChanges& changes);

/// Finds where the rows lie that the active snapshot sees and the scan, by the same snapshot, has
/// not found. Raises errors, as above.
void find_left_out(Relation table, const RowsByPage& found, BlockNumber pages,
                   GrowingArray<ItemPointerData>& left_out);

}  // namespace gputext
