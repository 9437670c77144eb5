// extension/queries/repeated_scan.hpp - takes the rows of an earlier scan in the place of one that a
// query asks for, and remembers those of a scan that has run
//
// What is the same for an inner query and for a node of a plan. The one who asks has checked rights
// and holds the locks of the query, and its snapshot is the active one.

#pragma once

#include "extension/base/postgres.hpp"

#include <memory>
#include <span>

#include "extension/base/growing_array.hpp"
#include "extension/queries/remembered_scans.hpp"
#include "extension/queries/rows_by_page.hpp"
#include "extension/queries/whole_scan.hpp"

namespace gputext {

/// Whether rows of the table may be remembered and taken, by this transaction and the active
/// snapshot. Raises errors.
bool may_be_repeated(Oid table);

/// The number that stands for a place as an id, in the order of places.
inline std::int64_t number_of_place(const ItemPointerData& place) {
    return (static_cast<std::int64_t>(ItemPointerGetBlockNumberNoCheck(&place)) << 16) |
           ItemPointerGetOffsetNumberNoCheck(&place);
}
inline ItemPointerData place_of_number(std::int64_t number) {
    ItemPointerData place;
    ItemPointerSet(&place, static_cast<BlockNumber>(number >> 16),
                   static_cast<OffsetNumber>(number & 0xffff));
    return place;
}

/// In memory that is destroyed after an error, too: see make_owned(). Functions raise errors.
class RepeatedScan {
public:
    /// Converts an id of the table to one of the query.
    using IdOf = Datum (*)(Datum id, const void* context);

    /// `context` keeps the conditions of the scan.
    explicit RepeatedScan(MemoryContext context) : context_(context) {}

    /// The scan that the query is; an unknown one for a query whose rows are not to be remembered.
    void set(const WholeScan& scan);
    const WholeScan& scan() const { return scan_; }
    bool known() const { return scan_.known(); }

    /// Looks for an earlier scan with ids of that type, or for one whose rows are known by place.
    bool find(Oid id_type);
    bool find_by_place();
    const RememberedScan& earlier() const { return *earlier_; }

    /// Finds out how the table has changed since the earlier scan. Where that is not known, the
    /// scan is forgotten. Without `id_of` the ids of rows that were added are number_of_place().
    bool read_changes(IdOf id_of, const void* context);
    /// After that:
    bool changed() const { return !found_.removed.empty() || !added_.empty(); }
    RowChanges changes() const {
        return {{found_.removed.data(), found_.removed.size()}, {added_.data(), added_.size()}};
    }
    std::int64_t nulls() const { return nulls_; }
    /// When the rows have been taken: says so, and has later statements compare the table with how
    /// it is now, where they read fewer pages then.
    void taken();

    /// What a scan has given that has run by the active snapshot.
    struct Found {
        Oid id_type;
        std::shared_ptr<const RememberedVectors> rows;
        std::span<const ItemPointerData> places;  // of these, in their order
        std::span<const ItemPointerData> nulls;   // of the rows that were left out for a null
        std::int64_t null_rows;                   // how many there are of these
    };
    /// Notes the state of the table when the scan has run.
    void note_state();
    /// Remembers the rows after that, if later statements may take them.
    void remember(const Found& found);

private:
    bool compare(Relation table, IdOf id_of, const void* context);
    bool read_added(Relation table, IdOf id_of, const void* context);
    void set_pages(Relation table, const Found& found);

    MemoryContext context_;
    WholeScan scan_;
    std::shared_ptr<const RememberedScan> earlier_;  // null for none
    std::shared_ptr<RememberedScan> now_;            // with the state of the table alone
    TableChanges found_;
    GrowingArray<AddedRow> added_;
    std::int64_t nulls_ = 0;  // now
    double ms_ = 0;           // that it took to find them
    // While rows are remembered:
    std::shared_ptr<RowsByPage> pages_;
    std::shared_ptr<ScanDefinition> definition_;
    GrowingArray<ItemPointerData> left_out_;
};

}  // namespace gputext
