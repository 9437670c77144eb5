// extension/server/parallel_build.hpp - reads a table for an index in parallel workers, as the
// builds of PostgreSQL's own indexes do
//
// Workers have the session's snapshot, settings and the role that builds, and share nothing but the
// scan of the table, a structure of plain memory, and the index itself.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/relscan.h"
#include "nodes/execnodes.h"
#include "storage/shm_toc.h"
#include "utils/relcache.h"
}

#include <cstddef>

namespace gputext {

/// What a process has to read with: the session (0) or a worker (1 and above).
struct BuildProcess {
    Relation table, index;
    IndexInfo* info;
    TableScanDesc scan = nullptr;  // of what this process reads; null for the whole table
    void* shared = nullptr;        // ParallelBuild::shared, which all processes have in common
    unsigned number = 0;
};

struct BuildCounts {
    double rows = 0;          // of the table that were read
    double index_tuples = 0;  // of them, those that the index has
};

using ReadTable = BuildCounts (*)(const BuildProcess& process);

struct ParallelBuild {
    ReadTable read;
    /// The exported C function that a worker begins in. It calls build_in_worker().
    const char* entry;
    void* shared = nullptr;  // memory that can be copied; copied for all processes, and back again
    std::size_t size = 0;
};

/// The workers that the server wants for an index of this table, by what the table's size and its
/// settings say. None where they would load another build of this library.
int wanted_build_workers(Relation table, Relation index, const IndexInfo* info);

/// Reads the table in the session and at most so many workers, at least one. Returns the sums over
/// all of them. Notes in `info` what PostgreSQL has to know of HOT chains.
BuildCounts build_in_parallel(Relation table, Relation index, IndexInfo* info,
                              const ParallelBuild& build, int workers);

/// The work of a worker.
void build_in_worker(shm_toc* toc, ReadTable read);

}  // namespace gputext
