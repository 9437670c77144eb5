#include "extension/values/row_places.hpp"

extern "C" {
#include "access/table.h"
#include "access/tableam.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
}

namespace gputext {

void PlacedRows::close(Open& table) {
    if (table.relation == nullptr) return;
    ExecDropSingleTupleTableSlot(table.row);
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
    table.row = table_slot_create(table.relation, nullptr);
    MemoryContextSwitchTo(before);
    return table;
}

/// Any version of the row will do for the table: the executor has chosen it by the snapshot.
Datum PlacedRows::at(const RowPlace& place, MemoryContext context) {
    const Open& table = open(place.relation, context);
    ItemPointerData row = place.row;
    bool null = true;
    Datum value = 0;
    if (table_tuple_fetch_row_version(table.relation, &row, SnapshotAny, table.row))
        value = slot_getattr(table.row, place.attribute, &null);
    if (null)
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                        errmsg("could not find row (%u,%u) of table \"%s\" again",
                               ItemPointerGetBlockNumber(&row), ItemPointerGetOffsetNumber(&row),
                               RelationGetRelationName(table.relation))));
    return value;
}

}  // namespace gputext
