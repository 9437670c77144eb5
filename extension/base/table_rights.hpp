// extension/base/table_rights.hpp - what the current user may read

#pragma once

#include "extension/base/postgres.hpp"

namespace gputext {

/// Whether the user may read all columns of the relation, and row-level security hides no row. A
/// relation that has been dropped meanwhile is none that anybody may read.
bool may_read_whole(Oid relation);

}  // namespace gputext
