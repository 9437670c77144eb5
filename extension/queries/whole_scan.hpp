// extension/queries/whole_scan.hpp - recognises a query that gives columns of all rows of a table, or
// of those for which a condition holds that depends on nothing but the row

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/sysattr.h"
#include "nodes/params.h"
#include "nodes/plannodes.h"
}

#include <array>

namespace gputext {

/// A scan of a whole table, and the columns that it gives.
struct WholeScan {
    /// In the place of an id: rows are known by where they lie.
    static constexpr AttrNumber kPlace = SelfItemPointerAttributeNumber;

    Oid relation = InvalidOid;
    AttrNumber id = InvalidAttrNumber;
    AttrNumber value = InvalidAttrNumber;
    /// Columns behind these two; InvalidAttrNumber for none.
    static constexpr int kMostKeys = 2;
    std::array<AttrNumber, kMostKeys> keys{};
    /// Joined by AND; NIL for none. The table's number in them is 1.
    List* conditions = NIL;

    bool known() const { return OidIsValid(relation); }
    /// Whether both give the same values of the same rows, whatever ids and keys are.
    bool same_rows(const WholeScan& other) const;
    bool operator==(const WholeScan& other) const {
        return id == other.id && keys == other.keys && same_rows(other);
    }
};

/// Known where the plan is a sequential scan of one table, in parallel workers or not, and the
/// query's columns with these numbers, from 1, are plain columns of the table; `id` may be kPlace.
/// So are as many keys behind the value, of types whose equality nobody can replace. Its
/// conditions, policies of row-level security among them, compute with PostgreSQL's own immutable
/// operators and casts, on columns and constants of PostgreSQL's own types and of enums, and
/// parameters that have a value. So they cannot be replaced, read no table and depend on no
/// setting. Says nothing of what may be checked and locked before the plan runs. Allocates.
WholeScan whole_scan_of(const PlannedStmt* statement, AttrNumber id, AttrNumber value,
                        ParamListInfo parameters = nullptr, int keys = 0);

/// The column of the table that the query's column with this number is, where that is known of the
/// plan's scan; InvalidAttrNumber for an expression.
AttrNumber column_of_scan(const PlannedStmt* statement, AttrNumber number);

}  // namespace gputext
