// extension/index/build.hpp - makes an index of all rows that a table has
//
// Source: none; each process sketches the rows that it reads, and has a page in memory for each
// length class and model, which it writes and logs when it is full. So parallel workers share
// nothing but the scan of the table and the end of the relation. At last the directory is written.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "nodes/execnodes.h"
#include "storage/shm_toc.h"
}

namespace gputext::index {

/// Time: about that of reading the table and 2 us for 2,000 characters, on all processes. Memory:
/// at most 4 MB a process for each model, and 15 MB for the sample that models are learned from.
IndexBuildResult* build_index(Relation table, Relation index, IndexInfo* info);

/// The pages of an index that has no rows, in the fork from which an unlogged index begins after a
/// crash.
void build_empty_index(Relation index);

/// What pg_stat_progress_create_index shows for a phase.
const char* build_phase_name(int64 phase);

}  // namespace gputext::index
