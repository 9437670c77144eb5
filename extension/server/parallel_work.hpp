// extension/server/parallel_work.hpp - shares a piece of work out among parallel workers of
// PostgreSQL
//
// A parallel worker has the session's snapshot, rights and settings, and nothing of its memory: no
// addresses, and no descriptors. What both need lies in a structure of plain memory that all of
// them share, and in files of the session's, which a worker opens by the session's table of
// descriptors (/proc/PID/fd). The session keeps the files, so that they outlive the workers.
//
// The server decides how many workers there are: max_worker_processes, max_parallel_workers. The
// session always works, too, so that work ends with fewer workers, and with none.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/parallel.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "storage/shm_toc.h"
}

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace gputext {

/// Most processes that share work, with the session.
constexpr unsigned kMostReaders = 64;

/// Does the work that is left, a part at a time, in the session (process 0) or in a worker (1 and
/// above). May raise errors; the session gets those of its workers, and stops all of them.
using WorkFunction = void (*)(void* shared, unsigned process);

struct ParallelWork {
    WorkFunction function;
    /// The exported C function that a worker begins in. It calls work_in_worker().
    const char* entry;
    void* shared;  // memory that can be copied; copied for the workers, and back again
    std::size_t size;
    const char* what = "reading rows";  // that processes do
};

/// The file of this library, which a parallel worker loads. Raises an error if it is not found.
const char* library_path();

/// How many workers to ask for, for work that takes one process about so many seconds: as many as
/// gputext.read_workers and max_parallel_workers allow and have enough to do for the few
/// milliseconds that it takes to start them.
unsigned wanted_workers(double seconds);

/// Does the work in this session and at most so many workers. Returns when it is done. The server
/// may be in parallel mode meanwhile, so the work must not write to tables.
void run_parallel_work(const ParallelWork& work, unsigned workers);

/// Work that workers have begun, while the session does something else.
struct BegunWork {
    ParallelWork work;
    ParallelContext* context;
    void* shared;  // what the workers see
};

/// Starts at most so many workers, at least one. The session is in parallel mode from then on.
BegunWork begin_parallel_work(const ParallelWork& work, unsigned workers);
/// Does in this session what is left, and waits for the workers.
void end_parallel_work(const BegunWork& begun);

/// Notes that there is something wrong with the row: `first_fault` is the first such row in the
/// end.
void note_fault(pg_atomic_uint64& first_fault, std::uint64_t row);

/// After the work: raises an error unless all of so many rows have been read.
void check_all_read(std::uint64_t read, std::uint64_t rows);

/// The begin of a worker.
void work_in_worker(shm_toc* toc, WorkFunction function);

/// Opens the file that is open in the session under this number; -1 when the system does not let
/// it. The descriptor is the caller's.
int open_file_of_session(pid_t session, int descriptor, int flags);

/// Maps so many bytes of such a file for reading, until the process ends; null when the system does
/// not let it.
const void* map_file_of_session(pid_t session, int descriptor, std::uint64_t size);

}  // namespace gputext
