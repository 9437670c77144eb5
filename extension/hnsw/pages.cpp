#include "extension/hnsw/pages.hpp"

extern "C" {
#include "access/genam.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "access/xlogrecord.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "storage/smgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>
#include <numeric>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/hnsw/shared_elements.hpp"
#include "extension/server/parallel_work.hpp"
#include "extension/server/session_job.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext::hnsw {
namespace {

/// Adds what the work takes to some milliseconds.
template <class Work>
void timed(double& milliseconds, const Work& work) {
    instr_time begin, end;
    INSTR_TIME_SET_CURRENT(begin);
    work();
    INSTR_TIME_SET_CURRENT(end);
    INSTR_TIME_SUBTRACT(end, begin);
    milliseconds += INSTR_TIME_GET_MILLISEC(end);
}

/// Pages that are logged by one record: as many as that may have.
constexpr std::uint32_t kMostAtOnce = XLR_MAX_BLOCK_ID;

constexpr std::size_t kAlignment = 4096;

/// The places lie in the current memory context.
Layout lay_out(Relation index, const Elements& elements) {
    const HnswGraphView& graph = elements.graph;
    const TupleSizes sizes = tuple_sizes(elements);
    if (sizes.element > kMostTuple)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("vectors of %zu dimensions do not fit a page of index \"%s\"",
                               elements.values.dimensions, RelationGetRelationName(index))));
    auto* const places = static_cast<ItemPointerData*>(MemoryContextAllocHuge(
        CurrentMemoryContext, std::max<std::size_t>(graph.size(), 1) * sizeof(ItemPointerData)));
    Placer placer(sizes);
    for (std::size_t element = 0; element < graph.size(); ++element) {
        if (element % 65536 == 0) CHECK_FOR_INTERRUPTS();
        Assert(graph.level(element) <= highest_level(sizes.m));
        places[element] = placer.next(graph.level(element));
    }
    if (placer.block() > MaxBlockNumber)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("index \"%s\" would need more than %u pages",
                               RelationGetRelationName(index), MaxBlockNumber)));
    return {sizes, {places, graph.size()}, static_cast<BlockNumber>(placer.block() + 1)};
}

/// Extends the file of an index that has no pages to so many, of zeros: while several processes
/// write, the server would fill up a segment that is not full, over what was written there.
void extend(Relation index, BlockNumber blocks) {
    void* const memory = palloc0(BLCKSZ + kAlignment);
    auto* const zeros = reinterpret_cast<char*>(TYPEALIGN(kAlignment, memory));
    for (BlockNumber begin = 0; begin < blocks;
         begin += std::min<BlockNumber>(blocks - begin, RELSEG_SIZE))
        smgrextend(RelationGetSmgr(index), MAIN_FORKNUM,
                   begin + std::min<BlockNumber>(blocks - begin, RELSEG_SIZE) - 1, zeros, true);
    pfree(memory);
}

/// Writes pages. Nothing else knows of them until the index is there, so that they need no shared
/// buffers.
void put(Relation index, std::span<const BlockNumber> blocks, std::span<const Page> pages) {
    const SMgrRelation storage = RelationGetSmgr(index);
    for (std::size_t i = 0; i < pages.size(); ++i) {
        set_checksum(pages[i], blocks[i]);
        // One request to synchronize a file with the disk is enough.
        const bool last = i + 1 == pages.size() || (blocks[i] + 1) % RELSEG_SIZE == 0;
        smgrwrite(storage, MAIN_FORKNUM, blocks[i], pages[i], !last);
    }
}

/// Logs them, too. A checkpoint does not begin between the record and the writes: recovery from it
/// would not read the record, and what is written later may not be on disk.
void log_and_put(Relation index, std::span<BlockNumber> blocks, std::span<Page> pages,
                 PageTimes& times) {
    MyProc->delayChkptFlags |= DELAY_CHKPT_START;
    PG_TRY();
    {
        RelationFiles files = files_of(index);
        timed(times.logging, [&] {
            log_newpages(&files, MAIN_FORKNUM, static_cast<int>(pages.size()), blocks.data(),
                         pages.data(), true);
        });
        timed(times.writing, [&] { put(index, blocks, pages); });
    }
    PG_FINALLY();
    { MyProc->delayChkptFlags &= ~DELAY_CHKPT_START; }
    PG_END_TRY();
}

/// A checkpoint that waits to begin looks every 10 ms whether it may, and would nearly always find
/// log_and_put() at work. `last` is where the one before has begun.
void let_checkpoint_begin(XLogRecPtr& last) {
    const XLogRecPtr begin = GetRedoRecPtr();
    if (begin == last) return;
    last = begin;
    pg_usleep(20000);
}

// ---- Several processes ----

/// Pages for which a worker is worth it. More processes would wait for each other, where they log.
constexpr BlockNumber kPagesOfWorker = 128;
constexpr int kMostWorkers = 7;

/// What all processes share. Plain memory.
struct PageWork {
    // The session's
    Relation index_here;
    const Elements* elements_here;
    const Layout* layout_here;
    // For workers
    Oid index;
    bool concurrent;
    SharedElements elements;

    bool is_logged;
    PageTimes times;  // of the session
    pg_atomic_uint64 next_block, rows_done, blocks_done;
};

/// Pages of an index that one process makes.
class PageWriter {
public:
    PageWriter(PageWork& work, Relation index, const Elements& elements, const Layout& layout,
               PageTimes& times)
        : work_(work),
          index_(index),
          elements_(elements),
          layout_(layout),
          times_(times),
          checkpoint_(GetRedoRecPtr()) {
        // Aligned, as direct I/O wants it
        auto* const memory = static_cast<char*>(palloc(kMostAtOnce * BLCKSZ + kAlignment));
        auto* const begin = reinterpret_cast<char*>(TYPEALIGN(kAlignment, memory));
        for (std::uint32_t i = 0; i < kMostAtOnce; ++i) pages_[i] = begin + std::size_t{i} * BLCKSZ;
    }

    /// Takes pages until there are no more, as many as a record logs at a time.
    void write_all(bool shows_progress) {
        for (;;) {
            CHECK_FOR_INTERRUPTS();
            const std::uint64_t begin = pg_atomic_fetch_add_u64(&work_.next_block, kMostAtOnce);
            if (begin >= layout_.blocks) return;
            write(static_cast<BlockNumber>(begin));
            if (shows_progress)
                pgstat_progress_update_param(
                    PROGRESS_CREATEIDX_TUPLES_DONE,
                    static_cast<int64>(pg_atomic_read_u64(&work_.rows_done)));
        }
    }

private:
    void write(BlockNumber begin) {
        const std::uint32_t count = std::min(layout_.blocks - begin, kMostAtOnce);
        BlockNumber blocks[kMostAtOnce];
        std::iota(blocks, blocks + count, begin);
        const std::size_t first = first_element(begin);
        std::size_t end = first;
        timed(times_.filling, [&] { end = fill({blocks, count}, first); });
        if (work_.is_logged) {
            let_checkpoint_begin(checkpoint_);
            log_and_put(index_, {blocks, count}, {pages_, count}, times_);
        } else {
            timed(times_.writing, [&] { put(index_, {blocks, count}, {pages_, count}); });
        }
        pg_atomic_fetch_add_u64(&work_.rows_done,
                                elements_.first_rows[end] - elements_.first_rows[first]);
        pg_atomic_fetch_add_u64(&work_.blocks_done, count);
        times_.pages += count;
    }

    std::size_t fill(std::span<const BlockNumber> blocks, std::size_t element) {
        for (std::size_t i = 0; i < blocks.size(); ++i)
            if (blocks[i] == kMetaBlock)
                fill_meta_page(pages_[i], elements_, layout_);
            else
                element = fill_page(pages_[i], blocks[i], element, elements_, layout_);
        return element;
    }

    /// The first one on the block or behind it.
    std::size_t first_element(BlockNumber block) const {
        const auto before = [&](const ItemPointerData& place) {
            return ItemPointerGetBlockNumberNoCheck(&place) < block;
        };
        return static_cast<std::size_t>(
            std::partition_point(layout_.places.begin(), layout_.places.end(), before) -
            layout_.places.begin());
    }

    PageWork& work_;
    Relation index_;
    const Elements& elements_;
    const Layout& layout_;
    PageTimes& times_;
    XLogRecPtr checkpoint_;
    Page pages_[kMostAtOnce];
};

void write_in_worker(PageWork& work) {
    auto* const mapped = make_owned<MappedElements>(CurrentMemoryContext);
    Failure failure;
    // Others write what this process does not.
    if (!attempt(failure, [&] { return mapped->map(work.elements); })) return;
    const Relation index =
        index_open(work.index, work.concurrent ? RowExclusiveLock : AccessExclusiveLock);
    PageTimes unused;
    PageWriter(work, index, mapped->elements(), mapped->layout(), unused).write_all(false);
    index_close(index, NoLock);
}

void write_in_process(void* shared, unsigned process) {
    auto& work = *static_cast<PageWork*>(shared);
    if (process > 0) return write_in_worker(work);
    PageWriter(work, work.index_here, *work.elements_here, *work.layout_here, work.times)
        .write_all(true);
}

}  // namespace

PageTimes write_pages(Relation index, const Elements& elements, const PageWorkers& workers) {
    if (RelationGetNumberOfBlocks(index) != 0)
        ereport(ERROR,
                (errcode(ERRCODE_INTERNAL_ERROR),
                 errmsg("index \"%s\" already contains data", RelationGetRelationName(index))));
    const MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext pages", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext outside = MemoryContextSwitchTo(context);
    pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, 0);
    pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL,
                                 static_cast<int64>(elements.rows.size()));
    PageWork work{};
    Layout layout;
    timed(work.times.placing, [&] { layout = lay_out(index, elements); });
    const int most = std::min(workers.most, kMostWorkers);
    const auto wanted = static_cast<unsigned>(std::min<BlockNumber>(
        static_cast<BlockNumber>(std::max(most, 0)), (layout.blocks - 1) / kPagesOfWorker));
    work.index_here = index;
    work.elements_here = &elements;
    work.layout_here = &layout;
    work.index = RelationGetRelid(index);
    work.concurrent = workers.concurrent;
    work.is_logged = RelationNeedsWAL(index);
    if (wanted > 0) {
        make_owned<DescriptorRoom>(context)->reserve(1);
        auto* const filed = make_owned<FiledElements>(context);
        const Layout* const places = &layout;
        const FileParts* const values = &workers.values;
        timed(work.times.sharing, [&] {
            run_threaded([&elements, filed, places, values](Execution& execution) {
                return filed->set(elements, *places, *values, execution);
            });
        });
        work.elements = filed->shared();
    }
    pg_atomic_init_u64(&work.next_block, 0);
    pg_atomic_init_u64(&work.rows_done, 0);
    pg_atomic_init_u64(&work.blocks_done, 0);
    extend(index, layout.blocks);
    run_parallel_work(
        {write_in_process, "gputext_hnsw_pages_worker", &work, sizeof work, "writing pages"},
        wanted);
    if (pg_atomic_read_u64(&work.blocks_done) != layout.blocks)
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                        errmsg("parallel workers have written other pages than index \"%s\" has",
                               RelationGetRelationName(index))));
    pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
                                 static_cast<int64>(elements.rows.size()));
    MemoryContextSwitchTo(outside);
    MemoryContextDelete(context);
    return work.times;
}

}  // namespace gputext::hnsw

extern "C" {
PGDLLEXPORT void gputext_hnsw_pages_worker(dsm_segment*, shm_toc* toc);

PGDLLEXPORT void gputext_hnsw_pages_worker(dsm_segment*, shm_toc* toc) {
    gputext::work_in_worker(toc, gputext::hnsw::write_in_process);
}
}
