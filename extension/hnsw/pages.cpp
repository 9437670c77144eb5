#include "extension/hnsw/pages.hpp"

extern "C" {
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "access/xlogrecord.h"
#include "commands/progress.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "storage/smgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>
#include <numeric>

#include "extension/base/server_versions.hpp"

namespace gputext::hnsw {
namespace {

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
void log_and_append(Relation index, std::span<BlockNumber> blocks, std::span<Page> pages) {
    MyProc->delayChkptFlags |= DELAY_CHKPT_START;
    PG_TRY();
    {
        RelationFiles files = files_of(index);
        log_newpages(&files, MAIN_FORKNUM, static_cast<int>(pages.size()), blocks.data(),
                     pages.data(), true);
        append(index, blocks, pages);
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

}  // namespace

void write_pages(Relation index, const Elements& elements) {
    if (RelationGetNumberOfBlocks(index) != 0)
        ereport(ERROR,
                (errcode(ERRCODE_INTERNAL_ERROR),
                 errmsg("index \"%s\" already contains data", RelationGetRelationName(index))));
    const Layout layout = lay_out(index, elements);
    // Aligned, as direct I/O wants it
    auto* const memory = static_cast<char*>(palloc(kMostAtOnce * BLCKSZ + kAlignment));
    auto* const begin = reinterpret_cast<char*>(TYPEALIGN(kAlignment, memory));
    Page pages[kMostAtOnce];
    for (std::uint32_t i = 0; i < kMostAtOnce; ++i) pages[i] = begin + std::size_t{i} * BLCKSZ;

    pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, 0);
    pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL,
                                 static_cast<int64>(elements.rows.size()));
    const bool is_logged = RelationNeedsWAL(index);
    XLogRecPtr checkpoint = GetRedoRecPtr();
    std::size_t element = 0;
    for (BlockNumber block = kMetaBlock; block < layout.blocks;) {
        CHECK_FOR_INTERRUPTS();
        const std::uint32_t count = std::min(layout.blocks - block, kMostAtOnce);
        BlockNumber blocks[kMostAtOnce];
        std::iota(blocks, blocks + count, block);
        for (std::uint32_t i = 0; i < count; ++i)
            if (block + i == kMetaBlock)
                fill_meta_page(pages[i], elements, layout);
            else
                element = fill_page(pages[i], block + i, element, elements, layout);
        if (is_logged) {
            let_checkpoint_begin(checkpoint);
            log_and_append(index, {blocks, count}, {pages, count});
        } else {
            append(index, {blocks, count}, {pages, count});
        }
        block += count;
        pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, elements.first_rows[element]);
    }
    pfree(memory);
    pfree(const_cast<ItemPointerData*>(layout.places.data()));
}

}  // namespace gputext::hnsw
