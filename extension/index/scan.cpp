// extension/index/scan.cpp - searches of an index
//
// A search reads the directory, then each page with sketches of a length that a near-duplicate of
// the document may have, and gives the rows whose sketches do not exclude them. The executor
// fetches these rows and evaluates the condition, so that the answer is exact. A search for an
// exclusion constraint gives only rows that it has compared by itself.

#include "extension/index/access_method.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

#include <algorithm>
#include <type_traits>

#include "cpp/documents/near_duplicate_check.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/index/open_index.hpp"
#include "extension/index/options.hpp"
#include "extension/index/pages_ahead.hpp"
#include "extension/index/query_value.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext::index {
namespace {

// ---- Exclusion constraints ----

/// Rechecks the rows that a search for a constraint finds. The executor would do so by the
/// operator, which does not know the index's threshold. This fetches a row, forms its document as
/// the index has it, and compares it at the index's threshold. Owns memory: made by make_owned(),
/// in the memory context that its rows are fetched in.
class ConstraintCheck {
public:
    /// The document lives as long as this.
    ConstraintCheck(IndexScanDesc scan, Bytes document) : scan_(scan), document_(document) {}

    /// Whether the row is there, or may be when its transaction ends, and is near the document.
    /// Expressions run as whoever writes the new row, as the executor's own do.
    bool is_near(ItemPointerData row);

    /// Releases what it holds of the table; an error does that by itself.
    void release();

private:
    void open();

    IndexScanDesc scan_;
    Bytes document_;
    NearDuplicateCheck check_;
    // From the first row on:
    IndexFetchTableData* fetch_ = nullptr;
    TupleTableSlot* slot_ = nullptr;
    IndexInfo* info_ = nullptr;
    EState* executor_ = nullptr;
};

/// Whether a search is one for an exclusion constraint: it sees what no query sees, rows of
/// transactions that have not ended.
bool is_for_constraint(IndexScanDesc scan) {
    return scan->indexRelation->rd_index->indisexclusion && scan->heapRelation != nullptr &&
           scan->xs_snapshot->snapshot_type == SNAPSHOT_DIRTY;
}

/// Only searches that leave a row for it need all of this.
void ConstraintCheck::open() {
    fetch_ = begin_fetch(scan_->heapRelation);
    slot_ = table_slot_create(scan_->heapRelation, nullptr);
    info_ = BuildIndexInfo(scan_->indexRelation);
    executor_ = CreateExecutorState();
    const CharacterLengths& characters = open_index(scan_->indexRelation).characters();
    const double threshold = threshold_of(scan_->indexRelation);
    attempt_or_raise(
        [&] { check_.prepare(document_, characters, threshold, stop_on_interrupt()); });
}

bool ConstraintCheck::is_near(ItemPointerData row) {
    CHECK_FOR_INTERRUPTS();
    if (fetch_ == nullptr) open();
    SnapshotData snapshot;
    InitDirtySnapshot(snapshot);
    bool more = false, dead = false;
    if (!table_index_fetch_tuple(fetch_, &row, &snapshot, slot_, &more, &dead)) return false;
    GetPerTupleExprContext(executor_)->ecxt_scantuple = slot_;
    Datum values[INDEX_MAX_KEYS];
    bool nulls[INDEX_MAX_KEYS];
    FormIndexDatum(info_, slot_, executor_, values, nulls);
    bool near = false;
    if (!nulls[0]) {
        const MemoryContext outside = MemoryContextSwitchTo(GetPerTupleMemoryContext(executor_));
        const Bytes other = bytes_of(PG_DETOAST_DATUM_PACKED(values[0]));
        attempt_or_raise(
            [&] { return take_value(check_.is_near(other, stop_on_interrupt()), near); });
        MemoryContextSwitchTo(outside);
    }
    ResetPerTupleExprContext(executor_);
    return near;
}

void ConstraintCheck::release() {
    if (fetch_ == nullptr) return;
    FreeExecutorState(executor_);
    ExecDropSingleTupleTableSlot(slot_);
    table_index_fetch_end(fetch_);
    fetch_ = nullptr;
}

// ---- Searches ----

/// A search. It reads each page once, and gives the rows that may be near all of its documents.
struct Search {
    MemoryContext context;  // of all that the search has, but for itself
    bool begun;
    bool is_empty;  // a document is null, so that no row is found
    int query_count;
    SketchQuery** queries;
    ConstraintCheck* constraint;  // null for a query's search
    BlockNumber* blocks;          // to be read, ascending
    std::uint32_t block_count;
    std::uint32_t block_room;
    PagesAhead pages;
    // What the last page had.
    std::uint16_t row_count;
    std::uint16_t rows_given;
    ItemPointerData rows[kPageRoom / (14 + SketchShape::letters)];
};

Search& search_of(IndexScanDesc scan) {
    return *static_cast<Search*>(scan->opaque);
}

void prepare_query(IndexScanDesc scan, Search& search, Bytes document, double threshold) {
    // Opened late: reading values from other tables may have the server forget an open index.
    const OpenIndex& opened = open_index(scan->indexRelation);
    search.queries[search.query_count++] =
        make_owned<SketchQuery>(search.context, document, opened.characters(), threshold,
                                opened.models(), best_simd(), stop_on_interrupt());
}

/// Prepares a condition with ~=. Its threshold is a setting, or the index's in a constraint.
void prepare_near(IndexScanDesc scan, Search& search, Bytes document) {
    double threshold = near_duplicate_threshold();
    if (is_for_constraint(scan)) {
        threshold = threshold_of(scan->indexRelation);
        search.constraint = make_owned<ConstraintCheck>(search.context, scan, document);
    }
    prepare_query(scan, search, document, threshold);
}

void prepare_queries(IndexScanDesc scan, Search& search) {
    const bool binary = is_binary(scan->indexRelation);
    search.queries =
        static_cast<SketchQuery**>(palloc(sizeof(SketchQuery*) * std::max(1, scan->numberOfKeys)));
    for (int key = 0; key < scan->numberOfKeys; ++key) {
        const ScanKeyData& condition = scan->keyData[key];
        if ((condition.sk_flags & SK_ISNULL) != 0) {
            search.is_empty = true;
            return;
        }
        if (condition.sk_strategy == kNearStrategy) {
            prepare_near(scan, search, bytes_of(PG_DETOAST_DATUM_PACKED(condition.sk_argument)));
        } else {
            const QueryValue* const query = query_value(condition.sk_argument);
            if ((query->binary != 0) != binary)
                ereport(ERROR,
                        (errcode(ERRCODE_DATATYPE_MISMATCH),
                         errmsg("documents of the type %s are not compared with one of the "
                                "type %s",
                                binary ? "bytea" : "text", query->binary != 0 ? "bytea" : "text")));
            prepare_query(scan, search, query->document(), query->threshold);
        }
    }
}

/// The length classes that pages are wanted of, and the kinds of sketches that some of them have.
struct WantedPages {
    std::uint8_t least_class, most_class;
    bool has[kMostSketchModels][kLengthClasses];  // by model and class
};

/// Adds the group's pages that are wanted.
void list_blocks(Relation index, std::uint32_t group, bool is_last, WantedPages& wanted,
                 Search& search) {
    const BlockNumber block = directory_block(group);
    const Buffer buffer = read_directory(index, block, BUFFER_LOCK_SHARE);
    const std::size_t models = open_index(index).model_count;
    const Page page = BufferGetPage(buffer);
    if (PageIsNew(page)) {
        UnlockReleaseBuffer(buffer);
        if (!is_last) raise_damaged(index, block, "The page is empty.");
        return;
    }
    const DirectoryEntry* const entries = directory_entries(page);
    for (std::uint32_t entry = 0; entry < kGroupEntries; ++entry) {
        const SketchKind found = entries[entry].sketches();
        if (found.length_class < wanted.least_class || found.length_class > wanted.most_class)
            continue;
        if (found.model >= models)
            raise_damaged(index, block, "It has sketches of a model that the index does not have.");
        wanted.has[found.model][found.length_class] = true;
        if (search.block_count == search.block_room) {
            search.block_room *= 2;
            search.blocks = static_cast<BlockNumber*>(
                repalloc_huge(search.blocks, sizeof(BlockNumber) * search.block_room));
        }
        search.blocks[search.block_count++] = block + 1 + entry;
    }
    UnlockReleaseBuffer(buffer);
}

void prepare_kinds(const WantedPages& wanted, Search& search) {
    attempt_or_raise([&] {
        for (std::uint8_t model = 0; model < kMostSketchModels; ++model)
            for (unsigned number = wanted.least_class; number <= wanted.most_class; ++number)
                for (int i = 0; i < search.query_count && wanted.has[model][number]; ++i)
                    search.queries[i]->prepare(static_cast<std::uint8_t>(number), model);
    });
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
    if (search.query_count > 0 && !search.is_empty && least <= most) {
        search.block_room = 64;
        search.blocks = static_cast<BlockNumber*>(palloc(sizeof(BlockNumber) * search.block_room));
        const std::uint32_t groups = groups_in(RelationGetNumberOfBlocks(scan->indexRelation));
        WantedPages wanted{length_class(least), length_class(most), {}};
        for (std::uint32_t group = 0; group < groups; ++group)
            list_blocks(scan->indexRelation, group, group + 1 == groups, wanted, search);
        search.pages = PagesAhead(search.blocks, search.block_count);
        prepare_kinds(wanted, search);
    }
    MemoryContextSwitchTo(outside);
}

/// Sets the rows of a page whose sketches no query excludes.
void take_candidates(Page page, const SketchPages& pages, Search& search) {
    constexpr std::size_t kRows = std::extent_v<decltype(Search::rows)>;
    std::uint16_t places[kRows];
    std::uint16_t count = trailer(page)->count;
    const SketchKind kind = trailer(page)->sketches;
    const SketchColumns columns = pages.columns(page);
    std::size_t left =
        search.queries[0]->candidates(columns, kind.length_class, kind.model, count, places);
    for (int i = 1; i < search.query_count; ++i) {
        std::uint16_t others[kRows], both[kRows];
        const std::size_t found =
            search.queries[i]->candidates(columns, kind.length_class, kind.model, count, others);
        left = static_cast<std::size_t>(
            std::set_intersection(places, places + left, others, others + found, both) - both);
        std::copy_n(both, left, places);
    }
    for (std::size_t i = 0; i < left; ++i) search.rows[i] = pages.rows(page)[places[i]];
    search.row_count = static_cast<std::uint16_t>(left);
}

/// Whether a table can have a row there. Other addresses must not be looked up: a read of the block
/// InvalidBlockNumber would extend the table.
bool is_possible(const ItemPointerData& row) {
    return ItemPointerIsValid(&row) &&
           ItemPointerGetBlockNumberNoCheck(&row) != InvalidBlockNumber &&
           ItemPointerGetOffsetNumberNoCheck(&row) <= MaxHeapTuplesPerPage;
}

/// False if there is none left.
bool read_next_page(IndexScanDesc scan) {
    Search& search = search_of(scan);
    search.row_count = search.rows_given = 0;
    if (search.pages.is_done()) return false;
    CHECK_FOR_INTERRUPTS();
    const OpenIndex& opened = open_index(scan->indexRelation);
    const BlockNumber block = search.pages.block();
    const Buffer buffer = search.pages.take(scan->indexRelation);
    LockBuffer(buffer, BUFFER_LOCK_SHARE);
    const Page page = BufferGetPage(buffer);
    check_sketches(scan->indexRelation, block, page, opened.models());
    if (is_in_use(page)) take_candidates(page, opened.pages(trailer(page)->sketches.model), search);
    if (!std::all_of(search.rows, search.rows + search.row_count, is_possible))
        raise_damaged(scan->indexRelation, block, "It has a row that no table can have.");
    UnlockReleaseBuffer(buffer);
    return true;
}

bool is_conflict(Search& search, const ItemPointerData& row) {
    const MemoryContext outside = MemoryContextSwitchTo(search.context);
    const bool near = search.constraint->is_near(row);
    MemoryContextSwitchTo(outside);
    return near;
}

/// Releases pins of buffers, and what a constraint's check holds of its table.
void release(Search& search) {
    search.pages.release();
    if (search.constraint != nullptr) search.constraint->release();
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
    release(search);
    MemoryContextReset(context);
    search = {};
    search.context = context;
    if (keys != nullptr && key_count > 0)
        std::copy_n(keys, static_cast<std::size_t>(key_count), scan->keyData);
}

bool next_row(IndexScanDesc scan, ScanDirection) {
    Search& search = search_of(scan);
    if (!search.begun) begin_search(scan);
    do {
        while (search.rows_given == search.row_count)
            if (!read_next_page(scan)) return false;
        scan->xs_heaptid = search.rows[search.rows_given++];
    } while (search.constraint != nullptr && !is_conflict(search, scan->xs_heaptid));
    scan->xs_recheck = search.constraint == nullptr;
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
    release(search_of(scan));
    MemoryContextDelete(search_of(scan).context);
}

}  // namespace gputext::index
