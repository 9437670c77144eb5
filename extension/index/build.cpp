// extension/index/build.cpp - makes an index of all rows that a table has
//
// Source: none; each process sketches the rows that it reads, and has a page in memory for each
// length class and model, which it writes and logs when it is full. So parallel workers share
// nothing but the scan of the table and the end of the relation. At last the directory is written.

#include "extension/index/access_method.hpp"

extern "C" {
#include "access/genam.h"
#include "access/parallel.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "executor/instrument.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/condition_variable.h"
#include "storage/lmgr.h"
#include "storage/spin.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"
}

#include <algorithm>
#include <cstring>

#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/index/learn_models.hpp"
#include "extension/index/options.hpp"
#include "extension/index/row_sketcher.hpp"
#include "extension/server/parallel_work.hpp"
#include "extension/server/release.hpp"
#include "extension/server/time_split.hpp"

namespace gputext::index {
namespace {

constexpr std::uint64_t kSharedKey = 1, kBufferUsageKey = 2, kWalUsageKey = 3;

enum Phase : int64 {
    kInitializing = PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE,
    kSampling,
    kReading,
    kWritingDirectory
};

/// Requires a lock of the buffer. A fork from which an index begins after a crash is logged
/// although the index itself is not.
void write_new(Relation index, ForkNumber fork, Buffer buffer, const PGAlignedBlock& page) {
    START_CRIT_SECTION();
    std::memcpy(BufferGetPage(buffer), page.data, BLCKSZ);
    MarkBufferDirty(buffer);
    if (RelationNeedsWAL(index) || fork == INIT_FORKNUM) log_newpage_buffer(buffer, true);
    END_CRIT_SECTION();
}

// ---- What one process reads ----

/// Sketches rows and writes pages.
struct Reader {
    Relation index;
    RowSketcher* sketcher;
    MemoryContext row_context;
    bool reports_progress;
    double sketches = 0;
    PGAlignedBlock** open;      // by model and length class: the page that is being filled
    std::uint32_t written = 0;  // pages
    BlockNumber next_block = 0, end_block = 0;  // that this process may write

    Reader(Relation index_opened, bool progress)
        : index(index_opened),
          sketcher(make_owned<RowSketcher>(CurrentMemoryContext, open_index(index_opened))),
          row_context(AllocSetContextCreate(CurrentMemoryContext, "gputext document",
                                            ALLOCSET_DEFAULT_SIZES)),
          reports_progress(progress),
          open(static_cast<PGAlignedBlock**>(palloc0(open_index(index_opened).model_count *
                                                     kLengthClasses * sizeof(PGAlignedBlock*)))) {}

    void write(const PGAlignedBlock& page) {
        const Buffer buffer = new_page();
        LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
        write_new(index, MAIN_FORKNUM, buffer, page);
        UnlockReleaseBuffer(buffer);
        ++written;
    }

    void write_all() {
        const std::size_t kinds = open_index(index).model_count * kLengthClasses;
        for (std::size_t kind = 0; kind < kinds; ++kind)
            if (open[kind] != nullptr && trailer(open[kind]->data)->count > 0) write(*open[kind]);
    }

    void add(ItemPointerData row, Datum document) {
        const MemoryContext outside = MemoryContextSwitchTo(row_context);
        const SketchedDocument sketched = sketcher->sketch(document);
        MemoryContextSwitchTo(outside);
        MemoryContextReset(row_context);

        const SketchKind kind{length_class(sketched.length), sketched.model};
        const SketchPages pages = open_index(index).pages(kind.model);
        PGAlignedBlock*& filled = open[kind.model * kLengthClasses + kind.length_class];
        if (filled == nullptr) {
            filled = static_cast<PGAlignedBlock*>(palloc(BLCKSZ));
            initialize_sketches(filled->data, pages.shape(), kind);
        }
        const Page page = filled->data;
        pages.append(page, row, sketched, sketcher->bytes());
        if (trailer(page)->count == pages.capacity()) {
            write(*filled);
            trailer(page)->count = 0;
        }
        ++sketches;
        if (reports_progress)
            pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
                                         static_cast<int64>(sketches));
    }

    /// A new page of the relation behind the directories.
    Buffer new_page() {
        for (;;) {
            if (next_block == end_block) extend();
            const BlockNumber block = next_block++;
            if (!is_directory(block)) return ReadBuffer(index, block);
            // The leader writes directories at last.
        }
    }

    /// Extends the relation by several pages at once, as processes wait for each other here: a part
    /// of what this one has written, so that few are left over. Inserts take those.
    void extend() {
        const std::uint32_t pages = std::clamp<std::uint32_t>(written / 32, 1, 32);
        LockRelationForExtension(index, ExclusiveLock);
        for (std::uint32_t i = 0; i < pages; ++i) {
            const Buffer buffer = ReadBuffer(index, P_NEW);
            if (i == 0) next_block = BufferGetBlockNumber(buffer);
            ReleaseBuffer(buffer);
        }
        UnlockRelationForExtension(index, ExclusiveLock);
        end_block = next_block + pages;
    }
};

void add_row(Relation, ItemPointer row, Datum* values, bool* nulls, bool, void* reader) {
    if (!nulls[0]) static_cast<Reader*>(reader)->add(*row, values[0]);
}

double read_table(Relation table, IndexInfo* info, Reader& reader, TableScanDesc scan) {
    const double rows = table_index_build_scan(table, reader.index, info, true,
                                               reader.reports_progress, add_row, &reader, scan);
    reader.write_all();
    return rows;
}

// ---- Several processes ----

/// Lies in memory that all processes share, with the scan of the table after it.
struct SharedBuild {
    Oid table;
    Oid index;
    bool concurrent;
    ConditionVariable one_is_done;
    slock_t mutex;
    // Sums over the workers that are done:
    int done;
    double rows;
    double sketches;
    bool broken_hot_chain;

    ParallelTableScanDesc scan() {
        return reinterpret_cast<ParallelTableScanDesc>(reinterpret_cast<char*>(this) +
                                                       MAXALIGN(sizeof(SharedBuild)));
    }
};

void report(SharedBuild& shared, double rows, double sketches, bool broken_hot_chain) {
    SpinLockAcquire(&shared.mutex);
    ++shared.done;
    shared.rows += rows;
    shared.sketches += sketches;
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
T* usage_of_workers(ParallelContext* context, std::uint64_t key) {
    auto* const usage =
        static_cast<T*>(shm_toc_allocate(context->toc, mul_size(sizeof(T), context->nworkers)));
    shm_toc_insert(context->toc, key, usage);
    return usage;
}

/// Reads the table with so many workers wanted; gives the rows read.
double read_in_parallel(Relation table, IndexInfo* info, Reader& reader, int workers) {
    EnterParallelMode();
    ParallelContext* const context =
        CreateParallelContext(library_path(), "gputext_index_build_worker", workers);
    const bool concurrent = info->ii_Concurrent;
    const Snapshot snapshot = concurrent ? RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
    const Size size =
        add_size(MAXALIGN(sizeof(SharedBuild)), table_parallelscan_estimate(table, snapshot));
    shm_toc_estimate_chunk(&context->estimator, size);
    shm_toc_estimate_chunk(&context->estimator, mul_size(sizeof(BufferUsage), context->nworkers));
    shm_toc_estimate_chunk(&context->estimator, mul_size(sizeof(WalUsage), context->nworkers));
    shm_toc_estimate_keys(&context->estimator, 3);
    InitializeParallelDSM(context);

    auto* const shared = static_cast<SharedBuild*>(shm_toc_allocate(context->toc, size));
    *shared = {};
    shared->table = RelationGetRelid(table);
    shared->index = RelationGetRelid(reader.index);
    shared->concurrent = concurrent;
    ConditionVariableInit(&shared->one_is_done);
    SpinLockInit(&shared->mutex);
    table_parallelscan_initialize(table, shared->scan(), snapshot);
    shm_toc_insert(context->toc, kSharedKey, shared);
    auto* const buffer_usage = usage_of_workers<BufferUsage>(context, kBufferUsageKey);
    auto* const wal_usage = usage_of_workers<WalUsage>(context, kWalUsageKey);

    LaunchParallelWorkers(context);
    ereport(DEBUG1,
            (errmsg("building index \"%s\" with %d of %d parallel workers",
                    RelationGetRelationName(reader.index), context->nworkers_launched, workers)));
    double rows = read_table(table, info, reader, begin_shared_scan(table, shared->scan()));
    WaitForParallelWorkersToAttach(context);
    wait_for_workers(*shared, context->nworkers_launched);
    rows += shared->rows;
    reader.sketches += shared->sketches;
    if (shared->broken_hot_chain) info->ii_BrokenHotChain = true;

    WaitForParallelWorkersToFinish(context);
    for (int worker = 0; worker < context->nworkers_launched; ++worker)
        InstrAccumParallelQuery(&buffer_usage[worker], &wal_usage[worker]);
    if (concurrent) UnregisterSnapshot(snapshot);
    DestroyParallelContext(context);
    ExitParallelMode();
    return rows;
}

int wanted_workers([[maybe_unused]] Relation table, [[maybe_unused]] Relation index,
                   [[maybe_unused]] const IndexInfo* info) {
#if PG_VERSION_NUM >= 170000
    const int workers = info->ii_ParallelWorkers;  // the server plans them for access methods, too
#else
    const int workers = plan_create_index_workers(RelationGetRelid(table), RelationGetRelid(index));
#endif
    // A worker that loads another build of this library would not know what it shares with it.
    return module_is_replaced() ? 0 : workers;
}

// ---- The pages around the sketches ----

/// `initialize(page)` makes the page.
template <class Initialize>
void append_page(Relation index, ForkNumber fork, Initialize initialize) {
    PGAlignedBlock page;
    initialize(page.data);
    const Buffer buffer = ReadBufferExtended(index, fork, P_NEW, RBM_NORMAL, nullptr);
    LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
    write_new(index, fork, buffer, page);
    UnlockReleaseBuffer(buffer);
}

void write_first_pages(Relation index, ForkNumber fork, std::span<const SketchModel> models) {
    LockRelationForExtension(index, ExclusiveLock);
    append_page(index, fork, [&](Page page) { initialize_meta_page(page, models.size()); });
    append_page(index, fork, [&](Page page) {
        initialize_directory(page);
        std::fill_n(directory_entries(page), models.size(), DirectoryEntry{kModelClass, 0, 0});
    });
    for (std::uint8_t number = 0; number < models.size(); ++number)
        append_page(index, fork,
                    [&](Page page) { initialize_model_page(page, number, models[number]); });
    UnlockRelationForExtension(index, ExclusiveLock);
}

/// What the directory says of a page.
DirectoryEntry entry_for(Relation index, const OpenIndex& opened, BlockNumber block) {
    if (is_model(opened, block)) return {kModelClass, 0, 0};
    const Buffer buffer = read_sketches(index, block, BUFFER_LOCK_SHARE);
    const Page page = BufferGetPage(buffer);
    DirectoryEntry entry{kNoClass, 0, 0};
    if (is_in_use(page)) {
        const SketchKind kind = trailer(page)->sketches;
        const bool full = trailer(page)->count == opened.pages(kind.model).capacity();
        entry = {kind.length_class, kind.model, full};
    }
    UnlockReleaseBuffer(buffer);
    return entry;
}

void write_directories(Relation index) {
    const OpenIndex& opened = open_index(index);
    const BlockNumber blocks = RelationGetNumberOfBlocks(index);
    for (std::uint32_t group = 0; group < groups_in(blocks); ++group) {
        const BlockNumber block = directory_block(group);
        PGAlignedBlock directory;
        initialize_directory(directory.data);
        for (std::uint32_t entry = 0; entry < kGroupEntries && block + 1 + entry < blocks;
             ++entry) {
            CHECK_FOR_INTERRUPTS();
            directory_entries(directory.data)[entry] = entry_for(index, opened, block + 1 + entry);
        }
        const Buffer buffer = read_directory(index, block, BUFFER_LOCK_EXCLUSIVE);
        write_new(index, MAIN_FORKNUM, buffer, directory);
        UnlockReleaseBuffer(buffer);
    }
}

void begin_phase(Phase phase) {
    pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, phase);
}

}  // namespace

IndexBuildResult* build_index(Relation table, Relation index, IndexInfo* info) {
    if (RelationGetNumberOfBlocks(index) != 0)
        ereport(ERROR,
                (errcode(ERRCODE_INTERNAL_ERROR),
                 errmsg("index \"%s\" already contains data", RelationGetRelationName(index))));
    if (!index->rd_index->indisexclusion && threshold_of(index) != kDefaultThreshold)
        raise_no_constraint();
    TimeSplit times;
    begin_phase(kSampling);
    write_first_pages(index, MAIN_FORKNUM, learn_models(table, index, info, wanted_bins(index)));
    times.lap("models learned");
    begin_phase(kReading);
    Reader reader(index, true);
    const int workers = wanted_workers(table, index, info);
    const double rows = workers > 0 ? read_in_parallel(table, info, reader, workers)
                                    : read_table(table, info, reader, nullptr);
    times.lap("table read");
    begin_phase(kWritingDirectory);
    write_directories(index);
    times.lap("directory written");
    times.report("index build");

    auto* const result = static_cast<IndexBuildResult*>(palloc(sizeof(IndexBuildResult)));
    result->heap_tuples = rows;
    result->index_tuples = reader.sketches;
    return result;
}

void build_empty_index(Relation index) {
    const SketchModel model = general_model(wanted_bins(index));
    write_first_pages(index, INIT_FORKNUM, {&model, 1});
}

const char* build_phase_name(int64 phase) {
    switch (phase) {
        case kInitializing:
            return "initializing";
        case kSampling:
            return "sampling documents";
        case kReading:
            return "reading table and sketching documents";
        case kWritingDirectory:
            return "writing directory";
        default:
            return nullptr;
    }
}

}  // namespace gputext::index

using namespace gputext;
using namespace gputext::index;

extern "C" {
PGDLLEXPORT void gputext_index_build_worker(dsm_segment*, shm_toc* toc);

PGDLLEXPORT void gputext_index_build_worker(dsm_segment*, shm_toc* toc) {
    auto* const shared = static_cast<SharedBuild*>(shm_toc_lookup(toc, kSharedKey, false));
    const Relation table =
        table_open(shared->table, shared->concurrent ? ShareUpdateExclusiveLock : ShareLock);
    const Relation opened =
        index_open(shared->index, shared->concurrent ? RowExclusiveLock : AccessExclusiveLock);
    IndexInfo* const info = BuildIndexInfo(opened);
    info->ii_Concurrent = shared->concurrent;

    InstrStartParallelQuery();
    Reader reader(opened, false);
    const double rows = read_table(table, info, reader, begin_shared_scan(table, shared->scan()));
    report(*shared, rows, reader.sketches, info->ii_BrokenHotChain);
    InstrEndParallelQuery(
        static_cast<BufferUsage*>(shm_toc_lookup(toc, kBufferUsageKey, false)) +
            ParallelWorkerNumber,
        static_cast<WalUsage*>(shm_toc_lookup(toc, kWalUsageKey, false)) + ParallelWorkerNumber);
    index_close(opened, NoLock);
    table_close(table, NoLock);
}
}
