#include "extension/hnsw/pages.hpp"

extern "C" {
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "access/xlogrecord.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/smgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>
#include <memory>
#include <numeric>

#include "cpp/base/job.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/server/session_job.hpp"

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
    const HnswGraph& graph = *elements.graph;
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

/// Writes pages behind those that the index has. Nothing else knows of them until the index is
/// there, so that they need no shared buffers.
void append(Relation index, std::span<const BlockNumber> blocks, std::span<const Page> pages) {
    const SMgrRelation storage = RelationGetSmgr(index);
    for (std::size_t i = 0; i < pages.size(); ++i) {
        set_checksum(pages[i], blocks[i]);
        // One request to synchronize a file with the disk is enough.
        const bool last = i + 1 == pages.size() || (blocks[i] + 1) % RELSEG_SIZE == 0;
        smgrextend(storage, MAIN_FORKNUM, blocks[i], pages[i], !last);
    }
}

/// Logs them, too. A checkpoint does not begin between the record and the writes: recovery from it
/// would not read the record, and what is written later may not be on disk.
void log_and_append(Relation index, std::span<BlockNumber> blocks, std::span<Page> pages,
                    PageTimes& times) {
    MyProc->delayChkptFlags |= DELAY_CHKPT_START;
    PG_TRY();
    {
        RelationFiles files = files_of(index);
        timed(times.logging, [&] {
            log_newpages(&files, MAIN_FORKNUM, static_cast<int>(pages.size()), blocks.data(),
                         pages.data(), true);
        });
        timed(times.extending, [&] { append(index, blocks, pages); });
    }
    PG_FINALLY();
    { MyProc->delayChkptFlags &= ~DELAY_CHKPT_START; }
    PG_END_TRY();
}

/// A checkpoint that waits to begin looks every 10 ms whether it may, and would nearly always find
/// log_and_append() at work. `last` is where the one before has begun.
void let_checkpoint_begin(XLogRecPtr& last) {
    const XLogRecPtr begin = GetRedoRecPtr();
    if (begin == last) return;
    last = begin;
    pg_usleep(20000);
}

/// Pages that are filled together, while those before are written.
constexpr std::uint32_t kFilledAtOnce = 16 * kMostAtOnce;

/// Fills pages on a thread of its own, one part of them after the other.
class PageFiller {
public:
    /// Two parts of pages have room in `memory`.
    PageFiller(const Elements& elements, const Layout& layout, char* memory)
        : elements_(elements), layout_(layout), memory_(memory) {}

    /// Begins with the pages behind those of the part before. Requires that there are some.
    void start() {
        part_ = 1 - part_;
        first_ = first_ + count_;
        count_ = std::min(layout_.blocks - first_, kFilledAtOnce);
        attempt_or_raise([&]() -> Status {
            job_ = Job::start(1, [this](Execution& execution) { return fill(execution); });
            return job_ != nullptr ? Status()
                                   : Status(ErrorCode::out_of_memory, "could not start a thread");
        });
    }
    /// Waits until they are filled.
    void finish() {
        while (!wait_until_readable(job_->ready_fd(), kLookEveryMilliseconds)) {
        }
        attempt_or_raise([&] { return job_->wait(); });
        job_.reset();
    }
    void end() { job_.reset(); }

    /// Of the part that was finished last, and of the one that was started last.
    BlockNumber first() const { return first_; }
    std::uint32_t count() const { return count_; }
    bool has_more() const { return first_ + count_ < layout_.blocks; }
    Page page(std::uint32_t i) const {
        return memory_ + (part_ * std::size_t{kFilledAtOnce} + i) * BLCKSZ;
    }
    /// The first element behind them.
    std::size_t element() const { return element_; }

private:
    Status fill(Execution& execution) {
        for (std::uint32_t i = 0; i < count_; ++i) {
            if (execution.stop_requested()) return Status::cancelled();
            if (first_ + i == kMetaBlock)
                fill_meta_page(page(i), elements_, layout_);
            else
                element_ = fill_page(page(i), first_ + i, element_, elements_, layout_);
        }
        return {};
    }

    const Elements& elements_;
    const Layout& layout_;
    char* memory_;
    std::size_t part_ = 1;
    BlockNumber first_ = kMetaBlock;
    std::uint32_t count_ = 0;
    std::size_t element_ = 0;
    std::unique_ptr<Job> job_;
};

/// What a part has that is written while the next one is filled.
struct FilledPages {
    BlockNumber first;
    std::uint32_t count;
    char* pages;
    std::size_t element;
};

void write_filled(Relation index, const FilledPages& filled, bool is_logged, XLogRecPtr& checkpoint,
                  PageTimes& times) {
    for (std::uint32_t done = 0; done < filled.count;) {
        CHECK_FOR_INTERRUPTS();
        const std::uint32_t count = std::min(filled.count - done, kMostAtOnce);
        BlockNumber blocks[kMostAtOnce];
        Page pages[kMostAtOnce];
        std::iota(blocks, blocks + count, filled.first + done);
        for (std::uint32_t i = 0; i < count; ++i)
            pages[i] = filled.pages + std::size_t{done + i} * BLCKSZ;
        if (is_logged) {
            let_checkpoint_begin(checkpoint);
            log_and_append(index, {blocks, count}, {pages, count}, times);
        } else {
            timed(times.extending, [&] { append(index, {blocks, count}, {pages, count}); });
        }
        done += count;
    }
}

/// After an error, or when the session ends.
void abandon(int, Datum filler) {
    reinterpret_cast<PageFiller*>(DatumGetPointer(filler))->end();
}

}  // namespace

PageTimes write_pages(Relation index, const Elements& elements) {
    if (RelationGetNumberOfBlocks(index) != 0)
        ereport(ERROR,
                (errcode(ERRCODE_INTERNAL_ERROR),
                 errmsg("index \"%s\" already contains data", RelationGetRelationName(index))));
    const MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext pages", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext outside = MemoryContextSwitchTo(context);
    PageTimes times;
    Layout layout;
    timed(times.placing, [&] { layout = lay_out(index, elements); });
    // Aligned, as direct I/O wants it
    void* const memory = palloc(2 * kFilledAtOnce * std::size_t{BLCKSZ} + kAlignment);
    auto* const filler = make_owned<PageFiller>(
        context, elements, layout, reinterpret_cast<char*>(TYPEALIGN(kAlignment, memory)));
    pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, 0);
    pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL,
                                 static_cast<int64>(elements.rows.size()));
    const bool is_logged = RelationNeedsWAL(index);
    XLogRecPtr checkpoint = GetRedoRecPtr();
    PG_ENSURE_ERROR_CLEANUP(abandon, PointerGetDatum(filler));
    {
        filler->start();
        for (bool more = true; more;) {
            timed(times.waiting, [&] { filler->finish(); });
            const FilledPages filled{filler->first(), filler->count(), filler->page(0),
                                     filler->element()};
            more = filler->has_more();
            if (more) filler->start();
            write_filled(index, filled, is_logged, checkpoint, times);
            pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
                                         elements.first_rows[filled.element]);
        }
    }
    PG_END_ENSURE_ERROR_CLEANUP(abandon, PointerGetDatum(filler));
    MemoryContextSwitchTo(outside);
    MemoryContextDelete(context);
    return times;
}

}  // namespace gputext::hnsw
