#include "extension/server/parallel_build.hpp"

extern "C" {
#include "access/genam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "executor/instrument.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"
}

#include <cstring>

#include "extension/base/server_versions.hpp"
#include "extension/server/parallel_work.hpp"
#include "extension/server/release.hpp"

namespace gputext {
namespace {

constexpr std::uint64_t kSharedKey = 1, kScanKey = 2, kOfBuildKey = 3, kBufferUsageKey = 4,
                        kWalUsageKey = 5;

struct SharedBuild {
    Oid table;
    Oid index;
    bool concurrent;
    ConditionVariable one_is_done;
    slock_t mutex;
    // Sums over the workers that are done:
    int done;
    BuildCounts counts;
    bool broken_hot_chain;
};

void report(SharedBuild& shared, const BuildCounts& counts, bool broken_hot_chain) {
    SpinLockAcquire(&shared.mutex);
    ++shared.done;
    shared.counts.rows += counts.rows;
    shared.counts.index_tuples += counts.index_tuples;
    shared.broken_hot_chain |= broken_hot_chain;
    SpinLockRelease(&shared.mutex);
    ConditionVariableSignal(&shared.one_is_done);
}

void wait_for_workers(SharedBuild& shared, int workers) {
    for (;;) {
        SpinLockAcquire(&shared.mutex);
        const bool all = shared.done == workers;
        SpinLockRelease(&shared.mutex);
        if (all) break;
        ConditionVariableSleep(&shared.one_is_done, WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
    }
    ConditionVariableCancelSleep();
}

template <class T>
T* put(ParallelContext* context, std::uint64_t key, Size size) {
    auto* const place = static_cast<T*>(shm_toc_allocate(context->toc, size));
    shm_toc_insert(context->toc, key, place);
    return place;
}

template <class T>
T* find(shm_toc* toc, std::uint64_t key) {
    return static_cast<T*>(shm_toc_lookup(toc, key, false));
}

}  // namespace

int wanted_build_workers([[maybe_unused]] Relation table, [[maybe_unused]] Relation index,
                         [[maybe_unused]] const IndexInfo* info) {
#if PG_VERSION_NUM >= 170000
    const int workers = info->ii_ParallelWorkers;  // the server plans them for access methods, too
#else
    const int workers = plan_create_index_workers(RelationGetRelid(table), RelationGetRelid(index));
#endif
    // A worker that loads another build of this library would not know what it shares with it.
    return module_is_replaced() ? 0 : workers;
}

BuildCounts build_in_parallel(Relation table, Relation index, IndexInfo* info,
                              const ParallelBuild& build, int workers) {
    EnterParallelMode();
    ParallelContext* const context = CreateParallelContext(library_path(), build.entry, workers);
    const bool concurrent = info->ii_Concurrent;
    const Snapshot snapshot = concurrent ? RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
    const Size scan_size = table_parallelscan_estimate(table, snapshot);
    const Size buffer_size = mul_size(sizeof(BufferUsage), context->nworkers);
    const Size wal_size = mul_size(sizeof(WalUsage), context->nworkers);
    for (const Size size : {sizeof(SharedBuild), scan_size, build.size, buffer_size, wal_size})
        shm_toc_estimate_chunk(&context->estimator, size);
    shm_toc_estimate_keys(&context->estimator, 5);
    InitializeParallelDSM(context);

    auto* const shared = put<SharedBuild>(context, kSharedKey, sizeof(SharedBuild));
    *shared = {};
    shared->table = RelationGetRelid(table);
    shared->index = RelationGetRelid(index);
    shared->concurrent = concurrent;
    ConditionVariableInit(&shared->one_is_done);
    SpinLockInit(&shared->mutex);
    auto* const scan = put<ParallelTableScanDescData>(context, kScanKey, scan_size);
    table_parallelscan_initialize(table, scan, snapshot);
    void* const of_build = put<void>(context, kOfBuildKey, build.size);
    if (build.size > 0) std::memcpy(of_build, build.shared, build.size);
    auto* const buffer_usage = put<BufferUsage>(context, kBufferUsageKey, buffer_size);
    auto* const wal_usage = put<WalUsage>(context, kWalUsageKey, wal_size);

    LaunchParallelWorkers(context);
    ereport(DEBUG1, (errmsg("building index \"%s\" with %d of %d parallel workers",
                            RelationGetRelationName(index), context->nworkers_launched, workers)));
    BuildCounts counts =
        build.read({table, index, info, begin_shared_scan(table, scan), of_build, 0});
    WaitForParallelWorkersToAttach(context);
    wait_for_workers(*shared, context->nworkers_launched);
    counts.rows += shared->counts.rows;
    counts.index_tuples += shared->counts.index_tuples;
    if (shared->broken_hot_chain) info->ii_BrokenHotChain = true;

    WaitForParallelWorkersToFinish(context);
    for (int worker = 0; worker < context->nworkers_launched; ++worker)
        InstrAccumParallelQuery(&buffer_usage[worker], &wal_usage[worker]);
    if (build.size > 0) std::memcpy(build.shared, of_build, build.size);
    if (concurrent) UnregisterSnapshot(snapshot);
    DestroyParallelContext(context);
    ExitParallelMode();
    return counts;
}

void build_in_worker(shm_toc* toc, ReadTable read) {
    auto* const shared = find<SharedBuild>(toc, kSharedKey);
    const Relation table =
        table_open(shared->table, shared->concurrent ? ShareUpdateExclusiveLock : ShareLock);
    const Relation index =
        index_open(shared->index, shared->concurrent ? RowExclusiveLock : AccessExclusiveLock);
    IndexInfo* const info = BuildIndexInfo(index);
    info->ii_Concurrent = shared->concurrent;

    InstrStartParallelQuery();
    const TableScanDesc scan =
        begin_shared_scan(table, find<ParallelTableScanDescData>(toc, kScanKey));
    const BuildCounts counts = read({table, index, info, scan, find<void>(toc, kOfBuildKey),
                                     static_cast<unsigned>(ParallelWorkerNumber) + 1});
    report(*shared, counts, info->ii_BrokenHotChain);
    InstrEndParallelQuery(find<BufferUsage>(toc, kBufferUsageKey) + ParallelWorkerNumber,
                          find<WalUsage>(toc, kWalUsageKey) + ParallelWorkerNumber);
    index_close(index, NoLock);
    table_close(table, NoLock);
}

}  // namespace gputext
