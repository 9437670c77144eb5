// extension/index/check.cpp - gputext_index_check(): verifies an index

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_am.h"
#include "commands/defrem.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/snapmgr.h"
}

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "cpp/base/stoppable.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/base/table_rights.hpp"
#include "extension/index/row_sketcher.hpp"

namespace gputext::index {
namespace {

/// A row's sketch, in few bytes.
struct Summary {
    std::uint64_t row;
    std::uint64_t sketch;  // a hash of it
    bool operator<(const Summary& other) const {
        return row != other.row ? row < other.row : sketch < other.sketch;
    }
    bool operator==(const Summary&) const = default;
};

/// FNV-1a. Of two different sketches, one in 2^64 pairs is taken for equal.
std::uint64_t hash_of(SketchedDocument document, const std::uint8_t* sketch, SketchShape shape) {
    std::uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&hash](const void* bytes, std::size_t size) {
        for (std::size_t i = 0; i < size; ++i)
            hash = (hash ^ static_cast<const std::uint8_t*>(bytes)[i]) * 0x100000001b3;
    };
    add(&document.length, sizeof document.length);
    add(&document.hash, sizeof document.hash);
    add(&document.model, sizeof document.model);
    add(sketch, SketchShape::letters + shape.gram_bytes());
    return hash;
}

std::uint64_t number_of(const ItemPointerData& row) {
    return std::uint64_t{ItemPointerGetBlockNumberNoCheck(&row)} << 16 |
           ItemPointerGetOffsetNumberNoCheck(&row);
}

/// What has been seen of an index, and is looked for in its table.
struct Check {
    Relation index;
    RowSketcher* sketcher;
    std::vector<Summary>* summaries;  // none if rows are not looked at; sorted before they are
    MemoryContext row_context;
    int64 sketches;
};

void add_sketches(Check& check, BlockNumber block, Page page) {
    const SketchKind kind = trailer(page)->sketches;
    const SketchPages pages = open_index(check.index).pages(kind.model);
    const SketchColumns columns = pages.columns(page);
    for (std::uint16_t place = 0; place < trailer(page)->count; ++place) {
        if (length_class(columns.lengths[place]) != kind.length_class)
            raise_damaged(check.index, block, "It has a sketch of another class of lengths.");
        if (!ItemPointerIsValid(&pages.rows(page)[place]))
            raise_damaged(check.index, block, "It has a sketch of no row.");
    }
    check.sketches += trailer(page)->count;
    if (check.summaries == nullptr) return;
    attempt_or_raise([&] {
        std::uint8_t sketch[kMostSketchBytes];
        for (std::uint16_t place = 0; place < trailer(page)->count; ++place) {
            pages.copy(page, place, sketch);
            check.summaries->push_back(
                {number_of(pages.rows(page)[place]),
                 hash_of({columns.lengths[place], columns.hashes[place], kind.model}, sketch,
                         pages.shape())});
        }
    });
}

/// A page and its word in the directory, both locked as an insert locks them.
void check_sketch_page(Check& check, Page directory, BlockNumber block) {
    const DirectoryEntry entry = directory_entries(directory)[entry_of(block)];
    const Buffer buffer = read_sketches(check.index, block, BUFFER_LOCK_SHARE);
    const Page page = BufferGetPage(buffer);
    if (is_in_use(page) != (entry.length_class != kNoClass) ||
        (is_in_use(page) && trailer(page)->sketches != entry.sketches()))
        raise_damaged(check.index, block, "The directory says otherwise what it is for.");
    if (is_in_use(page)) add_sketches(check, block, page);
    UnlockReleaseBuffer(buffer);
}

/// Models were read when the index was opened.
void check_model_entry(const Check& check, Page directory, BlockNumber block) {
    if (directory_entries(directory)[entry_of(block)].length_class != kModelClass)
        raise_damaged(check.index, block, "The directory says otherwise what it is for.");
}

void check_pages(Check& check) {
    const BlockNumber blocks = RelationGetNumberOfBlocks(check.index);
    if (blocks < 2) raise_damaged(check.index, kMetaBlock, "The file is too short.");
    for (std::uint32_t group = 0; group < groups_in(blocks); ++group) {
        const BlockNumber first = directory_block(group);
        const BlockNumber end = std::min<BlockNumber>(first + kGroupBlocks, blocks);
        for (BlockNumber block = first + 1; block < end; ++block) {
            CHECK_FOR_INTERRUPTS();
            const Buffer buffer = read_directory(check.index, first, BUFFER_LOCK_SHARE);
            if (PageIsNew(BufferGetPage(buffer)))
                raise_damaged(check.index, first, "The page is empty.");
            if (is_model(open_index(check.index), block))
                check_model_entry(check, BufferGetPage(buffer), block);
            else
                check_sketch_page(check, BufferGetPage(buffer), block);
            UnlockReleaseBuffer(buffer);
        }
    }
}

void check_row(Relation, ItemPointer row, Datum* values, bool* nulls, bool, void* state) {
    if (nulls[0]) return;
    auto& check = *static_cast<Check*>(state);
    const MemoryContext outside = MemoryContextSwitchTo(check.row_context);
    const SketchedDocument document = check.sketcher->sketch(values[0]);
    MemoryContextSwitchTo(outside);
    MemoryContextReset(check.row_context);
    const Summary wanted{number_of(*row),
                         hash_of(document, check.sketcher->bytes(),
                                 open_index(check.index).models()[document.model].shape())};
    if (std::binary_search(check.summaries->begin(), check.summaries->end(), wanted)) return;
    ereport(ERROR,
            (errcode(ERRCODE_INDEX_CORRUPTED),
             errmsg("index \"%s\" lacks the sketch of the row at (%u,%u)",
                    RelationGetRelationName(check.index), ItemPointerGetBlockNumberNoCheck(row),
                    ItemPointerGetOffsetNumberNoCheck(row)),
             errhint("Please REINDEX it.")));
}

/// The rows that a new snapshot sees. Their sketches are in the index by then, whatever others
/// change meanwhile, and VACUUM leaves them.
Snapshot take_snapshot(Relation index) {
    const Snapshot snapshot = RegisterSnapshot(GetTransactionSnapshot());
    if (IsolationUsesXactSnapshot() && index->rd_index->indcheckxmin &&
        !TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data),
                               snapshot->xmin))
        ereport(ERROR,
                (errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
                 errmsg("index \"%s\" cannot be verified by the snapshot of this transaction",
                        RelationGetRelationName(index))));
    return snapshot;
}

void check_rows(Check& check, Relation table, Snapshot snapshot) {
    IndexInfo* const info = BuildIndexInfo(check.index);
    info->ii_Concurrent = true;  // the rows of a snapshot are wanted
    // A constraint is not looked at.
    info->ii_ExclusionOps = nullptr;
    info->ii_ExclusionProcs = nullptr;
    info->ii_ExclusionStrats = nullptr;
    table_index_build_scan(table, check.index, info, true, false, check_row, &check,
                           table_beginscan_strat(table, snapshot, 0, nullptr, true, true));
}

/// Before anything is locked, which who has no rights may not do.
void check_owner(Oid index) {
    const char kind = get_rel_relkind(index);
    if (kind != '\0' && !owns_relation(index))
        aclcheck_error(ACLCHECK_NOT_OWNER, get_relkind_objtype(kind), get_rel_name(index));
}

[[noreturn]] void raise_no_index(Oid id) {
    const char* const name = get_rel_name(id);
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                    errmsg("\"%s\" is not an index of the access method gputext",
                           name != nullptr ? name : "?")));
    pg_unreachable();
}

void check_kind(Relation index) {
    if (index->rd_rel->relkind != RELKIND_INDEX ||
        index->rd_rel->relam != get_index_am_oid("gputext", true))
        raise_no_index(RelationGetRelid(index));
    if (RELATION_IS_OTHER_TEMP(index))
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("cannot read temporary tables of other sessions")));
    if (!index->rd_index->indisvalid)
        ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                        errmsg("index \"%s\" is not valid", RelationGetRelationName(index))));
}

/// Reads all pages, and raises an error that names the block if one is damaged, or if a page and
/// the directory disagree. With `rows_too`, a sketch is also computed of each row that a query may
/// see, and an error is raised for a row whose sketch the index lacks. Returns the number of
/// sketches. Memory, with `rows_too`: 24 bytes a sketch. The caller holds AccessShareLock on both,
/// and runs as the table's owner, as the index's expressions are evaluated.
int64 check_index(Relation table, Relation index, bool rows_too) {
    const MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext index check", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext outside = MemoryContextSwitchTo(context);
    Check check{index, nullptr, nullptr, nullptr, 0};
    Snapshot snapshot = nullptr;
    if (rows_too) {
        check.summaries = make_owned<std::vector<Summary>>(context);
        snapshot = take_snapshot(index);
    }
    check_pages(check);
    if (rows_too) {
        attempt_or_raise([&] {
            stoppable_sort(check.summaries->begin(), check.summaries->end(), std::less<>(),
                           stop_on_interrupt());
        });
        check.sketcher = make_owned<RowSketcher>(context, open_index(index));
        check.row_context =
            AllocSetContextCreate(context, "gputext document", ALLOCSET_DEFAULT_SIZES);
        check_rows(check, table, snapshot);
        UnregisterSnapshot(snapshot);
    }
    MemoryContextSwitchTo(outside);
    MemoryContextDelete(context);
    return check.sketches;
}

}  // namespace
}  // namespace gputext::index

using namespace gputext::index;

extern "C" {
SQL_FUNCTION(gputext_index_check) {
    const Oid id = PG_GETARG_OID(0);
    const bool rows_too = PG_GETARG_BOOL(1);
    check_owner(id);
    // The table is locked before its index, as everywhere.
    const Oid table_id = IndexGetRelation(id, true);
    const Relation table = OidIsValid(table_id) ? table_open(table_id, AccessShareLock) : nullptr;
    if (table == nullptr) raise_no_index(id);
    gputext::AsOwner as_owner(table->rd_rel->relowner);
    const Relation index = index_open(id, AccessShareLock);
    check_kind(index);
    const int64 sketches = check_index(table, index, rows_too);
    as_owner.end();
    index_close(index, NoLock);
    table_close(table, NoLock);
    PG_RETURN_INT64(sketches);
}
}
