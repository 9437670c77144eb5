// extension/index/vacuum.hpp - what VACUUM does to an index

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/genam.h"
}

namespace gputext::index {

/// Removes the sketches of rows that the callback names. Reads every page once, and locks those for
/// itself that have such rows. A page without
/// sketches may serve another length class afterwards; the file does not shrink, which REINDEX
/// does.
IndexBulkDeleteResult* remove_rows(IndexVacuumInfo* info, IndexBulkDeleteResult* result,
                                   IndexBulkDeleteCallback is_dead, void* state);

/// Where remove_rows() was not called, as no row is dead, counts pages and sketches by the directory:
/// reads only pages that are not full.
IndexBulkDeleteResult* end_vacuum(IndexVacuumInfo* info, IndexBulkDeleteResult* result);

}  // namespace gputext::index
