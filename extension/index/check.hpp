// extension/index/check.hpp - verifies an index

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/relcache.h"
}

namespace gputext::index {

/// Reads all pages, and raises an error that names the block if one is damaged, or if a page and
/// the directory disagree. With `rows_too`, a sketch is also computed of each row that a query may
/// see, and an error is raised for a row whose sketch the index lacks. Returns the number of
/// sketches. Memory, with `rows_too`: 24 bytes a sketch. The caller holds AccessShareLock on both,
/// and runs as the table's owner, as the index's expressions are evaluated.
int64 check_index(Relation table, Relation index, bool rows_too);

}  // namespace gputext::index
