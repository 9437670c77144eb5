// extension/queries/whole_scan.hpp - recognises a query that gives two columns of all rows of a
// table

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "nodes/plannodes.h"
}

namespace gputext {

/// A scan of a whole table, and the columns that it gives.
struct WholeScan {
    Oid relation = InvalidOid;
    AttrNumber id = InvalidAttrNumber;
    AttrNumber value = InvalidAttrNumber;

    bool known() const { return OidIsValid(relation); }
    friend bool operator==(const WholeScan&, const WholeScan&) = default;
};

/// Known where the plan is a sequential scan of one table, in parallel workers or not, without a
/// condition, and its first two columns are plain columns of the table. Columns behind them are of
/// no interest. Policies of row-level security would be conditions. Says nothing of what may be
/// checked and locked before the plan runs.
WholeScan whole_scan_of(const PlannedStmt* statement);

}  // namespace gputext
