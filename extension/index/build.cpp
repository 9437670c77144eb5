// extension/index/build.cpp - makes an index of all rows that a table has
//
// Source: none; each process sketches the rows that it reads, and has a page in memory for each
// length class and model, which it writes and logs when it is full. So parallel workers share
// nothing but the scan of the table and the end of the relation. At last the directory is written.

#include "extension/index/access_method.hpp"

extern "C" {
#include "access/genam.h"
#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>
#include <cstring>

#include "extension/base/owned.hpp"
#include "extension/index/learn_models.hpp"
#include "extension/index/options.hpp"
#include "extension/index/row_sketcher.hpp"
#include "extension/server/parallel_build.hpp"
#include "extension/server/time_split.hpp"

namespace gputext::index {
namespace {

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

/// In the session, whose progress is reported, or in a worker.
BuildCounts read_table(const BuildProcess& process) {
    const bool is_worker = process.number > 0;
    Reader reader(process.index, !is_worker);
    const double rows = table_index_build_scan(process.table, process.index, process.info, true,
                                               !is_worker, add_row, &reader, process.scan);
    reader.write_all();
    return {rows, reader.sketches};
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
    const int workers = wanted_build_workers(table, index, info);
    const BuildCounts counts =
        workers > 0
            ? build_in_parallel(table, index, info,
                                {read_table, "gputext_index_build_worker"},
                                workers)
            : read_table({table, index, info});
    times.lap("table read");
    begin_phase(kWritingDirectory);
    write_directories(index);
    times.lap("directory written");
    times.report("index build");

    auto* const result = static_cast<IndexBuildResult*>(palloc(sizeof(IndexBuildResult)));
    result->heap_tuples = counts.rows;
    result->index_tuples = counts.index_tuples;
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
    build_in_worker(toc, read_table);
}
}
