#include "extension/server/parallel_work.hpp"

extern "C" {
#include "access/xact.h"
#include "storage/fd.h"
}

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "extension/server/release.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

constexpr std::uint64_t kSharedKey = 1;

/// What it takes the postmaster to start one worker, and the worker to begin: less than this many
/// seconds of work are not worth it.
constexpr double kWorthAWorker = 0.02;

}  // namespace

const char* library_path() {
    static char path[MAXPGPATH];
    if (path[0] == '\0' && !find_module(path))
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                        errmsg("could not find the file of the gputext library")));
    return path;
}

unsigned wanted_workers(double seconds) {
    // A worker that loads another build of this library would not know the structure that it shares
    // with the session.
    if (module_is_replaced()) return 0;
    const double useful = seconds / kWorthAWorker;
    const unsigned most = std::min(read_workers(), kMostReaders - 1);
    return useful < most ? static_cast<unsigned>(std::max(0.0, useful)) : most;
}

void run_parallel_work(const ParallelWork& work, unsigned workers) {
    if (workers == 0) {
        work.function(work.shared, 0);
        return;
    }
    end_parallel_work(begin_parallel_work(work, workers));
}

BegunWork begin_parallel_work(const ParallelWork& work, unsigned workers) {
    EnterParallelMode();
    ParallelContext* const context =
        CreateParallelContext(library_path(), work.entry, static_cast<int>(workers));
    shm_toc_estimate_chunk(&context->estimator, work.size);
    shm_toc_estimate_keys(&context->estimator, 1);
    InitializeParallelDSM(context);
    void* const shared = shm_toc_allocate(context->toc, work.size);
    std::memcpy(shared, work.shared, work.size);
    shm_toc_insert(context->toc, kSharedKey, shared);
    LaunchParallelWorkers(context);
    ereport(DEBUG1, (errmsg("%s in %d of %d parallel workers", work.what,
                            context->nworkers_launched, static_cast<int>(workers))));
    return {work, context, shared};
}

void end_parallel_work(const BegunWork& begun) {
    begun.work.function(begun.shared, 0);
    WaitForParallelWorkersToFinish(begun.context);
    std::memcpy(begun.work.shared, begun.shared, begun.work.size);
    DestroyParallelContext(begun.context);
    ExitParallelMode();
}

void note_fault(pg_atomic_uint64& first_fault, std::uint64_t row) {
    std::uint64_t first = pg_atomic_read_u64(&first_fault);
    while (row < first && !pg_atomic_compare_exchange_u64(&first_fault, &first, row)) {
    }
}

void check_all_read(std::uint64_t read, std::uint64_t rows) {
    if (read != rows)
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                        errmsg("parallel workers have read %llu of %llu rows",
                               static_cast<unsigned long long>(read),
                               static_cast<unsigned long long>(rows))));
}

void work_in_worker(shm_toc* toc, WorkFunction function) {
    function(shm_toc_lookup(toc, kSharedKey, false),
             static_cast<unsigned>(ParallelWorkerNumber) + 1);
}

int open_file_of_session(pid_t session, int descriptor, int flags) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", static_cast<int>(session), descriptor);
    return open(path, flags | O_CLOEXEC);
}

const void* map_file_of_session(pid_t session, int descriptor, std::uint64_t size) {
    if (size == 0) return "";
    const int file = open_file_of_session(session, descriptor, O_RDONLY);
    if (file < 0) return nullptr;
    void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    return mapped == MAP_FAILED ? nullptr : mapped;
}

}  // namespace gputext
