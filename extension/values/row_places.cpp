#include "extension/values/row_places.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

namespace gputext {

void PlacedRows::close(Open& table) {
    if (table.relation == nullptr) return;
    if (BufferIsValid(table.buffer)) ReleaseBuffer(table.buffer);
    table_close(table.relation, AccessShareLock);
    table = {};
}

void PlacedRows::close() {
    for (Open& table : tables_) close(table);
}

PlacedRows::Open& PlacedRows::open(Oid relation, MemoryContext context) {
    Open& table = tables_[relation % kTables];
    if (table.relation != nullptr && RelationGetRelid(table.relation) == relation) return table;
    close(table);
    const MemoryContext before = MemoryContextSwitchTo(context);
    table.relation = table_open(relation, AccessShareLock);
    MemoryContextSwitchTo(before);
    return table;
}

void PlacedRows::turn_to(Open& table, BlockNumber block) {
    if (BufferIsValid(table.buffer)) {
        if (table.block == block) return;
        ReleaseBuffer(table.buffer);
        table.buffer = InvalidBuffer;
    }
    table.buffer = ReadBuffer(table.relation, block);
    table.block = block;
    // Whoever moves rows of the page has ended by now, and nobody begins to while it is pinned.
    LockBuffer(table.buffer, BUFFER_LOCK_SHARE);
    LockBuffer(table.buffer, BUFFER_LOCK_UNLOCK);
}

/// Any version of the row will do for the table: the executor has chosen it by the snapshot. What
/// the snapshot sees keeps its line and its bytes while the page is pinned, so no lock is needed,
/// as for the rows of a page that a scan has looked at.
Datum PlacedRows::at(const RowPlace& place, MemoryContext context) {
    Open& table = open(place.relation, context);
    turn_to(table, ItemPointerGetBlockNumber(&place.row));
    const Page page = BufferGetPage(table.buffer);
    const OffsetNumber line = ItemPointerGetOffsetNumber(&place.row);
    bool null = true;
    Datum value = 0;
    if (line <= PageGetMaxOffsetNumber(page) && ItemIdIsNormal(PageGetItemId(page, line))) {
        const ItemId item = PageGetItemId(page, line);
        HeapTupleData row{};
        row.t_tableOid = place.relation;
        row.t_self = place.row;
        row.t_data = reinterpret_cast<HeapTupleHeader>(PageGetItem(page, item));
        row.t_len = ItemIdGetLength(item);
        value = heap_getattr(&row, place.attribute, RelationGetDescr(table.relation), &null);
    }
    if (null)
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                        errmsg("could not find row (%u,%u) of table \"%s\" again",
                               ItemPointerGetBlockNumber(&place.row), line,
                               RelationGetRelationName(table.relation))));
    return value;
}

}  // namespace gputext
