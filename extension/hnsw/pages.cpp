#include "extension/hnsw/pages.hpp"

extern "C" {
#include "access/genam.h"
#include "access/generic_xlog.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "access/xlogrecord.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "storage/condition_variable.h"
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
#include "extension/server/release.hpp"
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

/// Writes pages. Nothing else needs them until the index is there, so that they need no shared
/// buffers. Other sessions see an index that is built concurrently, and pg_prewarm() and the like
/// may read its pages before they are as they will be: drop_buffers() comes after the last one.
void put(Relation index, std::span<const BlockNumber> blocks, std::span<const Page> pages) {
    const SMgrRelation storage = RelationGetSmgr(index);
    for (std::size_t i = 0; i < pages.size(); ++i) {
        set_checksum(pages[i], blocks[i]);
        // One request to synchronize a file with the disk is enough.
        const bool last = i + 1 == pages.size() || (blocks[i] + 1) % RELSEG_SIZE == 0;
        smgrwrite(storage, MAIN_FORKNUM, blocks[i], pages[i], !last);
    }
}

/// Logs pages, and writes them. A checkpoint does not begin between the record and the writes:
/// recovery from it would not read the record, and what is written later may not be on disk.
template <class Log>
void log_and_put(Relation index, std::span<const BlockNumber> blocks, std::span<const Page> pages,
                 WriteTimes& times, const Log& log) {
    MyProc->delayChkptFlags |= DELAY_CHKPT_START;
    PG_TRY();
    {
        timed(times.logging, log);
        timed(times.writing, [&] { put(index, blocks, pages); });
    }
    PG_FINALLY();
    { MyProc->delayChkptFlags &= ~DELAY_CHKPT_START; }
    PG_END_TRY();
}

/// Whole pages.
void log_pages(Relation index, std::span<BlockNumber> blocks, std::span<Page> pages) {
    RelationFiles files = files_of(index);
    log_newpages(&files, MAIN_FORKNUM, static_cast<int>(pages.size()), blocks.data(), pages.data(),
                 true);
}

/// What the links have changed of pages that were logged without them. `since` is where WAL was
/// before that: after a checkpoint since, the server logs the pages as a whole, as those of any
/// table. The records are those by which pgvector's inserts change pages.
void log_changes(Relation index, std::span<const BlockNumber> blocks, std::span<const Page> pages,
                 std::span<const std::span<char>> changes, XLogRecPtr since) {
    RelationFiles files = files_of(index);
    for (std::size_t begin = 0; begin < pages.size(); begin += MAX_GENERIC_XLOG_PAGES) {
        const std::size_t end = std::min<std::size_t>(pages.size(), begin + MAX_GENERIC_XLOG_PAGES);
        XLogBeginInsert();
        for (std::size_t i = begin; i < end; ++i) {
            const auto number = static_cast<std::uint8_t>(i - begin);
            PageSetLSN(pages[i], since);
            XLogRegisterBlock(number, &files, MAIN_FORKNUM, blocks[i], pages[i], REGBUF_STANDARD);
            XLogRegisterBufData(number, changes[i].data(), static_cast<int>(changes[i].size()));
        }
        const XLogRecPtr logged = XLogInsert(RM_GENERIC_ID, 0);
        for (std::size_t i = begin; i < end; ++i) PageSetLSN(pages[i], logged);
    }
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

/// Pages are taken by batches, as many as a record logs. A segment has a whole number of them.
static_assert(RELSEG_SIZE % kMostAtOnce == 0);
constexpr std::uint64_t kBatchesOfSegment = RELSEG_SIZE / kMostAtOnce;

/// Pages are only written before the links are known where these are a small part of them: they are
/// logged once more then.
constexpr std::size_t kLeastOfNeighbors = 2;

/// How far the build is. Before the links are known to all, the batches that were begun are ended.
enum Stage : std::uint32_t { kLinksUnknown, kEndingBatches, kLinksKnown };

/// What all processes share. Plain memory.
struct PageWork {
    Oid index;
    bool concurrent, is_logged;
    SharedElements elements;  // its links from kLinksKnown on

    pg_atomic_uint32 stage, writing_early;  // Stage; processes that write pages without links
    ConditionVariable changed;              // either
    // Batches without links, ascending; all of those that have been begun, from kLinksKnown on
    pg_atomic_uint64 next_early;
    std::uint64_t early;
    XLogRecPtr early_from, early_to;  // WAL between which they are logged

    pg_atomic_uint64 next_task, rows_done, blocks_done;
    WriteTimes before_links[kMostWorkers + 1], with_links[kMostWorkers + 1];  // by process

    // The session's
    BegunPages* begun;
};

/// Where logging without links ends. A checkpoint, which comes when there is so much WAL, would
/// have pages logged as a whole once more. A quarter of the room is for the links, and for others.
XLogRecPtr end_of_early_log() {
    const auto room = static_cast<std::uint64_t>(std::max(CheckPointSegments - 1, 0)) *
                      static_cast<std::uint64_t>(wal_segment_size);
    return GetRedoRecPtr() + room / 4 * 3;
}

/// Pages of an index that one process makes.
class PageWriter {
public:
    PageWriter(PageWork& work, unsigned process, Relation index, const Elements& elements,
               const Layout& layout)
        : work_(work),
          process_(process),
          index_(index),
          elements_(elements),
          layout_(layout),
          batches_((std::uint64_t{layout.blocks} + kMostAtOnce - 1) / kMostAtOnce),
          checkpoint_(GetRedoRecPtr()),
          changes_(static_cast<char*>(palloc(kMostAtOnce * kMostChanges))) {
        // Aligned, as direct I/O wants it
        auto* const memory = static_cast<char*>(palloc(kMostAtOnce * BLCKSZ + kAlignment));
        auto* const begin = reinterpret_cast<char*>(TYPEALIGN(kAlignment, memory));
        for (std::uint32_t i = 0; i < kMostAtOnce; ++i) pages_[i] = begin + std::size_t{i} * BLCKSZ;
    }

    /// Writes batches without links until these are known, or there is no more to do.
    void write_early() {
        pg_atomic_fetch_add_u32(&work_.writing_early, 1);
        while (pg_atomic_read_u32(&work_.stage) == kLinksUnknown && may_log_early()) {
            CHECK_FOR_INTERRUPTS();
            const std::uint64_t batch = pg_atomic_fetch_add_u64(&work_.next_early, 1);
            if (batch >= batches_) break;
            write_without_links(batch);
        }
        pg_atomic_fetch_sub_u32(&work_.writing_early, 1);
        ConditionVariableBroadcast(&work_.changed);
    }

    /// Writes batches, with their links, until there are no more.
    void write_all(bool shows_progress) {
        // Several segments at a time, as processes wait for each other where they write the same
        // file. But pages are logged in their order, in which recovery makes the file.
        const std::uint64_t mixed = work_.is_logged ? work_.early : batches_;
        const std::uint64_t segments = (mixed + kBatchesOfSegment - 1) / kBatchesOfSegment;
        const std::uint64_t mixed_tasks = segments * kBatchesOfSegment;
        for (;;) {
            CHECK_FOR_INTERRUPTS();
            const std::uint64_t task = pg_atomic_fetch_add_u64(&work_.next_task, 1);
            if (task < mixed_tasks) {
                const std::uint64_t batch = task % segments * kBatchesOfSegment + task / segments;
                if (batch >= mixed) continue;
                write_with_links(batch);
            } else {
                const std::uint64_t batch = mixed + (task - mixed_tasks);
                if (batch >= batches_) return;
                write_with_links(batch);
            }
            if (shows_progress)
                pgstat_progress_update_param(
                    PROGRESS_CREATEIDX_TUPLES_DONE,
                    static_cast<int64>(pg_atomic_read_u64(&work_.rows_done)));
        }
    }

private:
    /// Of an index that is logged: as long as that will not have been in vain.
    bool may_log_early() const {
        return !work_.is_logged ||
               (GetRedoRecPtr() < work_.early_from && GetXLogInsertRecPtr() < work_.early_to);
    }

    void write_without_links(std::uint64_t batch) {
        WriteTimes& times = work_.before_links[process_];
        set_blocks(batch);
        timed(times.filling, [&] { fill(first_element(blocks_[0]), Links::unknown); });
        log_and_put_all(times);
    }

    void write_with_links(std::uint64_t batch) {
        WriteTimes& times = work_.with_links[process_];
        set_blocks(batch);
        const std::size_t first = first_element(blocks_[0]);
        std::size_t end = first;
        timed(times.filling, [&] { end = fill(first, Links::known); });
        if (batch < work_.early)
            log_and_put_changed(times);
        else
            log_and_put_all(times);
        pg_atomic_fetch_add_u64(&work_.rows_done,
                                elements_.first_rows[end] - elements_.first_rows[first]);
        pg_atomic_fetch_add_u64(&work_.blocks_done, count_);
    }

    void log_and_put_all(WriteTimes& times) {
        times.pages += count_;
        const std::span blocks(blocks_, count_);
        const std::span pages(pages_, count_);
        if (!work_.is_logged) return timed(times.writing, [&] { put(index_, blocks, pages); });
        let_checkpoint_begin(checkpoint_);
        log_and_put(index_, blocks, pages, times, [&] { log_pages(index_, blocks, pages); });
    }

    /// Of a batch that was written without links: those pages that have some.
    void log_and_put_changed(WriteTimes& times) {
        BlockNumber blocks[kMostAtOnce];
        Page pages[kMostAtOnce];
        std::span<char> changes[kMostAtOnce];
        std::uint32_t count = 0;
        char* to = changes_;
        for (std::uint32_t i = 0; i < count_; ++i) {
            const std::size_t size = blocks_[i] == kMetaBlock ? 0 : write_changes(pages_[i], to);
            if (size == 0) continue;
            blocks[count] = blocks_[i];
            pages[count] = pages_[i];
            changes[count++] = {to, size};
            to += size;
        }
        times.pages += count;
        if (!work_.is_logged)
            return timed(times.writing, [&] { put(index_, {blocks, count}, {pages, count}); });
        let_checkpoint_begin(checkpoint_);
        log_and_put(index_, {blocks, count}, {pages, count}, times, [&] {
            log_changes(index_, {blocks, count}, {pages, count}, {changes, count},
                        work_.early_from);
        });
    }

    void set_blocks(std::uint64_t batch) {
        const auto begin = static_cast<BlockNumber>(batch * kMostAtOnce);
        count_ = std::min(layout_.blocks - begin, kMostAtOnce);
        std::iota(blocks_, blocks_ + count_, begin);
    }

    std::size_t fill(std::size_t element, Links links) {
        for (std::size_t i = 0; i < count_; ++i)
            if (blocks_[i] == kMetaBlock)
                fill_meta_page(pages_[i], elements_, layout_);
            else
                element = fill_page(pages_[i], blocks_[i], element, elements_, layout_, links);
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
    unsigned process_;
    Relation index_;
    const Elements& elements_;
    const Layout& layout_;
    std::uint64_t batches_;
    XLogRecPtr checkpoint_;
    char* changes_;
    // The batch
    std::uint32_t count_ = 0;
    BlockNumber blocks_[kMostAtOnce];
    Page pages_[kMostAtOnce];
};

/// Waits until it is so.
template <class Condition>
void wait_until(PageWork& work, const Condition& condition) {
    ConditionVariablePrepareToSleep(&work.changed);
    while (!condition())
        ConditionVariableSleep(&work.changed, WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
    ConditionVariableCancelSleep();
}

void write_in_worker(PageWork& work, unsigned process) {
    auto* const mapped = make_owned<MappedElements>(CurrentMemoryContext);
    Failure failure;
    // Others write what this process does not.
    if (!attempt(failure, [&] { return mapped->map(work.elements); })) return;
    const Relation index =
        index_open(work.index, work.concurrent ? RowExclusiveLock : AccessExclusiveLock);
    PageWriter writer(work, process, index, mapped->elements(), mapped->layout());
    writer.write_early();
    wait_until(work, [&] { return pg_atomic_read_u32(&work.stage) == kLinksKnown; });
    if (attempt(failure, [&] { return mapped->map_links(work.elements); })) writer.write_all(false);
    index_close(index, NoLock);
}

}  // namespace

struct BegunPages {
    MemoryContext context;
    Relation index;
    Elements elements;
    Layout layout;
    unsigned workers;
    FiledElements* filed;  // for workers
    PageTimes times;
    PageWork work;
    bool has_workers;  // that have begun
    BegunWork in_parallel;
};

namespace {

void write_in_process(void* shared, unsigned process) {
    auto& work = *static_cast<PageWork*>(shared);
    if (process > 0) return write_in_worker(work, process);
    const BegunPages& begun = *work.begun;
    PageWriter(work, process, begun.index, begun.elements, begun.layout).write_all(true);
}

/// What workers see, where they have begun.
PageWork& shared_work(BegunPages& begun) {
    return begun.has_workers ? *static_cast<PageWork*>(begun.in_parallel.shared) : begun.work;
}

void start_workers(BegunPages& begun) {
    // The links may have taken hours, and workers load the library that is installed now.
    if (module_is_replaced()) return;
    begun.in_parallel = begin_parallel_work({write_in_process, "gputext_hnsw_pages_worker",
                                             &begun.work, sizeof begun.work, "writing pages"},
                                            begun.workers);
    begun.has_workers = true;
}

/// Tells workers that the links are known, when those that write pages without have ended that.
void set_known(BegunPages& begun, const HnswGraphView& graph) {
    begun.elements.graph = graph;
    PageWork& work = shared_work(begun);
    pg_atomic_exchange_u32(&work.stage, kEndingBatches);
    wait_until(work, [&] { return pg_atomic_read_u32(&work.writing_early) == 0; });
    const std::uint64_t batches =
        (std::uint64_t{begun.layout.blocks} + kMostAtOnce - 1) / kMostAtOnce;
    work.early = std::min(pg_atomic_read_u64(&work.next_early), batches);
    if (begun.workers > 0) {
        FiledElements* const filed = begun.filed;
        timed(begun.times.sharing, [&] {
            run_threaded([&graph, filed](Execution& execution) {
                return filed->set_links(graph, execution);
            });
        });
        work.elements = filed->shared();
    }
    pg_atomic_exchange_u32(&work.stage, kLinksKnown);
    ConditionVariableBroadcast(&work.changed);
}

}  // namespace

void WriteTimes::add(const WriteTimes& other) {
    pages += other.pages;
    filling += other.filling;
    logging += other.logging;
    writing += other.writing;
}

BegunPages* begin_pages(Relation index, const Elements& elements, const PageWorkers& workers) {
    if (RelationGetNumberOfBlocks(index) != 0)
        ereport(ERROR,
                (errcode(ERRCODE_INTERNAL_ERROR),
                 errmsg("index \"%s\" already contains data", RelationGetRelationName(index))));
    const MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext pages", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext outside = MemoryContextSwitchTo(context);
    auto* const begun = static_cast<BegunPages*>(palloc0(sizeof(BegunPages)));
    begun->context = context;
    begun->index = index;
    begun->elements = elements;
    timed(begun->times.placing, [&] { begun->layout = lay_out(index, elements); });
    const int most = std::min(workers.most, kMostWorkers);
    begun->workers = static_cast<unsigned>(std::min<BlockNumber>(
        static_cast<BlockNumber>(std::max(most, 0)), (begun->layout.blocks - 1) / kPagesOfWorker));
    PageWork& work = begun->work;
    work.begun = begun;
    work.index = RelationGetRelid(index);
    work.concurrent = workers.concurrent;
    work.is_logged = RelationNeedsWAL(index);
    work.early_from = GetXLogInsertRecPtr();
    work.early_to = end_of_early_log();
    ConditionVariableInit(&work.changed);
    pg_atomic_init_u32(&work.stage, kLinksUnknown);
    pg_atomic_init_u32(&work.writing_early, 0);
    pg_atomic_init_u64(&work.next_early, 0);
    pg_atomic_init_u64(&work.next_task, 0);
    pg_atomic_init_u64(&work.rows_done, 0);
    pg_atomic_init_u64(&work.blocks_done, 0);
    if (begun->workers > 0) {
        make_owned<DescriptorRoom>(context)->reserve(2);
        FiledElements* const filed = begun->filed = make_owned<FiledElements>(context);
        const Layout* const layout = &begun->layout;
        const FileParts* const values = &workers.values;
        timed(begun->times.sharing, [&] {
            run_threaded([&elements, filed, layout, values](Execution& execution) {
                return filed->set(elements, *layout, *values, execution);
            });
        });
        work.elements = filed->shared();
    }
    extend(index, begun->layout.blocks);
    const TupleSizes& sizes = begun->layout.sizes;
    if (workers.early && begun->workers > 0 &&
        kLeastOfNeighbors * sizes.neighbors(0) <= sizes.element)
        start_workers(*begun);
    MemoryContextSwitchTo(outside);
    return begun;
}

PageTimes end_pages(BegunPages* begun, const HnswGraphView& graph) {
    const MemoryContext outside = MemoryContextSwitchTo(begun->context);
    const auto rows = static_cast<int64>(begun->elements.rows.size());
    pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, 0);
    pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, rows);
    set_known(*begun, graph);
    if (begun->workers > 0 && !begun->has_workers) start_workers(*begun);
    if (begun->has_workers)
        end_parallel_work(begun->in_parallel);
    else
        write_in_process(&begun->work, 0);
    PageWork& work = begun->work;
    if (pg_atomic_read_u64(&work.blocks_done) != begun->layout.blocks)
        ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR),
                        errmsg("parallel workers have written other pages than index \"%s\" has",
                               RelationGetRelationName(begun->index))));
    if (work.concurrent) drop_buffers(begun->index);
    pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, rows);
    PageTimes times = begun->times;
    for (const WriteTimes& process : work.before_links) times.before_links.add(process);
    for (const WriteTimes& process : work.with_links) times.with_links.add(process);
    MemoryContextSwitchTo(outside);
    MemoryContextDelete(begun->context);
    return times;
}

}  // namespace gputext::hnsw

extern "C" {
PGDLLEXPORT void gputext_hnsw_pages_worker(dsm_segment*, shm_toc* toc);

PGDLLEXPORT void gputext_hnsw_pages_worker(dsm_segment*, shm_toc* toc) {
    gputext::work_in_worker(toc, gputext::hnsw::write_in_process);
}
}
