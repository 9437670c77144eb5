// extension/hnsw/build.hpp - builds an index of pgvector's access method hnsw
//
// The index is pgvector's own: its pages are those that pgvector writes, but that the graph is made
// from exact neighbors (cpp/hnsw/builder.hpp) and is the same each time. pgvector searches it,
// inserts into it and vacuums it, with gputext and without.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "nodes/execnodes.h"
#include "utils/relcache.h"
}

namespace gputext::hnsw {

/// Phases of the build, as pg_stat_progress_create_index has them. The first two are pgvector's.
enum Phase : int64 { kInitializing = 1, kReading = 2, kOrdering, kLinking, kWriting };

/// The phase's name; null for an unknown one.
const char* phase_name(int64 phase);

/// Builds an empty index whose access method has pgvector's handler. Null, and nothing written,
/// where that is left to pgvector: the reason is a WARNING if the user can do something about it,
/// else in the log at level DEBUG1.
IndexBuildResult* build_index(Relation table, Relation index, IndexInfo* info);

}  // namespace gputext::hnsw
