#include "extension/index/scan.hpp"

extern "C" {
#include "access/htup_details.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>

#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/index/open_index.hpp"
#include "extension/index/query_value.hpp"
#include "extension/rows/text_arguments.hpp"
#include "extension/server/settings.hpp"

namespace gputext::index {
namespace {

/// Of pages, each of which is read once: what is near all of the documents.
struct Search {
    MemoryContext context;  // of all that the search has, but for itself
    bool begun;
    bool hopeless;  // a document is null
    int query_count;
    SketchQuery** queries;
    BlockNumber* blocks;  // to be read, ascending
    std::uint32_t block_count;
    std::uint32_t block_room;
    std::uint32_t blocks_read;
    // What the last page had.
    std::uint16_t row_count;
    std::uint16_t rows_given;
    ItemPointerData rows[kPageRoom / (14 + SketchShape::letters)];
};

Search& search_of(IndexScanDesc scan) {
    return *static_cast<Search*>(scan->opaque);
}

void prepare_query(Search& search, const OpenIndex& opened, Bytes document, double threshold) {
    // An object for each condition, beside the others: few statements have more than one.
    search.queries[search.query_count++] =
        make_owned<SketchQuery>(search.context, document, opened.characters(), threshold,
                                opened.model(), best_simd(), stop_on_interrupt());
    CHECK_FOR_INTERRUPTS();
}

void prepare_queries(IndexScanDesc scan, Search& search) {
    const OpenIndex opened = open_index(scan->indexRelation);
    search.queries =
        static_cast<SketchQuery**>(palloc(sizeof(SketchQuery*) * std::max(1, scan->numberOfKeys)));
    for (int key = 0; key < scan->numberOfKeys; ++key) {
        const ScanKeyData& condition = scan->keyData[key];
        if ((condition.sk_flags & SK_ISNULL) != 0) {
            search.hopeless = true;
            return;
        }
        if (condition.sk_strategy == kNearStrategy) {
            prepare_query(search, opened, bytes_of(PG_DETOAST_DATUM_PACKED(condition.sk_argument)),
                          near_duplicate_threshold());
        } else {
            const QueryValue* const query = query_value(condition.sk_argument);
            if ((query->binary != 0) != opened.binary)
                ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                                errmsg("documents of the type %s are not compared with one of the "
                                       "type %s",
                                       opened.binary ? "bytea" : "text",
                                       query->binary != 0 ? "bytea" : "text")));
            prepare_query(search, opened, query->document(), query->threshold);
        }
    }
}

/// Adds the group's pages of the classes.
void list_blocks(Relation index, std::uint32_t group, bool is_last, std::uint8_t least_class,
                 std::uint8_t most_class, Search& search) {
    const BlockNumber block = directory_block(group);
    const Buffer buffer = read_locked(index, block, PageKind::directory, BUFFER_LOCK_SHARE);
    const Page page = BufferGetPage(buffer);
    if (PageIsNew(page)) {
        UnlockReleaseBuffer(buffer);
        if (!is_last) raise_damaged(index, block, "The page is empty.");
        return;
    }
    const DirectoryEntry* const entries = directory_entries(page);
    for (std::uint32_t entry = 0; entry < kGroupEntries; ++entry) {
        const std::uint8_t found = entries[entry].length_class;
        if (found < least_class || found > most_class || found == kNoClass) continue;
        if (search.block_count == search.block_room) {
            search.block_room *= 2;
            search.blocks = static_cast<BlockNumber*>(
                repalloc_huge(search.blocks, sizeof(BlockNumber) * search.block_room));
        }
        search.blocks[search.block_count++] = block + 1 + entry;
    }
    UnlockReleaseBuffer(buffer);
}

void begin_search(IndexScanDesc scan) {
    Search& search = search_of(scan);
    search.begun = true;
    count_index_search(scan);
    const MemoryContext outside = MemoryContextSwitchTo(search.context);
    prepare_queries(scan, search);
    std::uint32_t least = 0, most = UINT32_MAX;
    for (int i = 0; i < search.query_count; ++i) {
        least = std::max(least, search.queries[i]->least_length());
        most = std::min(most, search.queries[i]->most_length());
    }
    if (search.query_count > 0 && !search.hopeless && least <= most) {
        search.block_room = 64;
        search.blocks = static_cast<BlockNumber*>(palloc(sizeof(BlockNumber) * search.block_room));
        const std::uint32_t groups = groups_in(RelationGetNumberOfBlocks(scan->indexRelation));
        for (std::uint32_t group = 0; group < groups; ++group)
            list_blocks(scan->indexRelation, group, group + 1 == groups, length_class(least),
                        length_class(most), search);
    }
    MemoryContextSwitchTo(outside);
}

/// Of a page that is in use: the rows that all queries leave.
void take_candidates(Page page, const SketchPages& pages, Search& search) {
    std::uint16_t places[std::size(search.rows)];
    std::uint16_t count = trailer(page)->count;
    const std::uint8_t number = trailer(page)->length_class;
    const SketchColumns columns = pages.columns(page);
    std::size_t left = search.queries[0]->candidates(columns, number, count, places);
    for (int i = 1; i < search.query_count; ++i) {
        std::uint16_t others[std::size(search.rows)], both[std::size(search.rows)];
        const std::size_t found = search.queries[i]->candidates(columns, number, count, others);
        left = static_cast<std::size_t>(
            std::set_intersection(places, places + left, others, others + found, both) - both);
        std::copy_n(both, left, places);
    }
    for (std::size_t i = 0; i < left; ++i) search.rows[i] = pages.rows(page)[places[i]];
    search.row_count = static_cast<std::uint16_t>(left);
}

/// Whether a table can have a row there. Others must not come to a table or a bitmap: the number of
/// no block is what makes a table longer.
bool is_possible(const ItemPointerData& row) {
    return ItemPointerIsValid(&row) &&
           ItemPointerGetBlockNumberNoCheck(&row) != InvalidBlockNumber &&
           ItemPointerGetOffsetNumberNoCheck(&row) <= MaxHeapTuplesPerPage;
}

/// False if there is none left.
bool read_next_page(IndexScanDesc scan) {
    Search& search = search_of(scan);
    search.row_count = search.rows_given = 0;
    if (search.blocks_read == search.block_count) return false;
    CHECK_FOR_INTERRUPTS();
    const SketchPages pages = open_index(scan->indexRelation).pages();
    const BlockNumber block = search.blocks[search.blocks_read++];
    const Buffer buffer =
        read_locked(scan->indexRelation, block, PageKind::sketches, BUFFER_LOCK_SHARE);
    const Page page = BufferGetPage(buffer);
    if (is_in_use(page)) take_candidates(page, pages, search);
    if (!std::all_of(search.rows, search.rows + search.row_count, is_possible))
        raise_damaged(scan->indexRelation, block, "It has a row that no table can have.");
    UnlockReleaseBuffer(buffer);
    return true;
}

}  // namespace

IndexScanDesc begin_scan(Relation index, int keys, int order_bys) {
    const IndexScanDesc scan = RelationGetIndexScan(index, keys, order_bys);
    auto* const search = static_cast<Search*>(palloc0(sizeof(Search)));
    search->context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext index scan", ALLOCSET_DEFAULT_SIZES);
    scan->opaque = search;
    return scan;
}

void restart_scan(IndexScanDesc scan, ScanKey keys, int key_count, ScanKey, int) {
    Search& search = search_of(scan);
    const MemoryContext context = search.context;
    MemoryContextReset(context);
    search = {};
    search.context = context;
    if (keys != nullptr && key_count > 0)
        std::copy_n(keys, static_cast<std::size_t>(key_count), scan->keyData);
}

bool next_row(IndexScanDesc scan, ScanDirection) {
    Search& search = search_of(scan);
    if (!search.begun) begin_search(scan);
    while (search.rows_given == search.row_count)
        if (!read_next_page(scan)) return false;
    scan->xs_heaptid = search.rows[search.rows_given++];
    scan->xs_recheck = true;
    return true;
}

int64 add_rows_to_bitmap(IndexScanDesc scan, TIDBitmap* bitmap) {
    Search& search = search_of(scan);
    if (!search.begun) begin_search(scan);
    int64 rows = 0;
    while (read_next_page(scan)) {
        tbm_add_tuples(bitmap, search.rows, search.row_count, true);
        rows += search.row_count;
    }
    return rows;
}

void end_scan(IndexScanDesc scan) {
    MemoryContextDelete(search_of(scan).context);
}

}  // namespace gputext::index
