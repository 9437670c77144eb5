#include "extension/values/row_versions.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/pg_am_d.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/paths.h"
#include "parser/parse_relation.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
}

#include <algorithm>

#include "extension/base/path_hooks.hpp"
#include "extension/base/server_versions.hpp"

namespace gputext {
namespace {

/// Longer than any name that a query can give a column.
const char kName[] = "the transaction that made the row which the value is of, as gputext asks for";
static_assert(sizeof kName > NAMEDATALEN);

/// Columns beyond which none is added.
constexpr int kMostColumns = MaxHeapAttributeNumber - 3;

// ---- Tables ----

/// Rows of the relation itself are such of a heap, or it has none.
bool is_heap(Oid relation) {
    const HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
    if (!HeapTupleIsValid(tuple)) return false;
    const auto* const form = reinterpret_cast<const FormData_pg_class*>(GETSTRUCT(tuple));
    bool heap = relation >= FirstNormalObjectId && form->relpersistence != RELPERSISTENCE_TEMP;
    if (form->relkind == RELKIND_RELATION || form->relkind == RELKIND_MATVIEW)
        heap = heap && form->relam == HEAP_TABLE_AM_OID;
    else
        heap = heap && form->relkind == RELKIND_PARTITIONED_TABLE;
    ReleaseSysCache(tuple);
    return heap;
}

/// Whether rows have the column's values, and do not compute them.
bool is_stored([[maybe_unused]] Oid relation, [[maybe_unused]] AttrNumber column) {
#ifdef ATTRIBUTE_GENERATED_VIRTUAL
    const HeapTuple tuple =
        SearchSysCache2(ATTNUM, ObjectIdGetDatum(relation), Int16GetDatum(column));
    if (!HeapTupleIsValid(tuple)) return false;
    const auto* const form = reinterpret_cast<const FormData_pg_attribute*>(GETSTRUCT(tuple));
    const bool stored = form->attgenerated != ATTRIBUTE_GENERATED_VIRTUAL;
    ReleaseSysCache(tuple);
    return stored;
#else
    return true;
#endif
}

/// The table and its children.
List* family_of(const VersionedTable& table) {
    // The executor takes the locks that it needs.
    return table.with_children || table.tells_children()
               ? find_all_inheritors(table.relation, NoLock, nullptr)
               : list_make1_oid(table.relation);
}

// ---- Queries ----

/// A table of a query, seen from within it.
struct SoughtTable {
    int number;  // in the range table
    Index depth;
};

/// Whether the expression or query has the whole row of the table, which one more column changes.
bool takes_whole_row(Node* node, void* context) {
    auto& sought = *static_cast<SoughtTable*>(context);
    if (node == nullptr) return false;
    if (IsA(node, Var)) {
        const auto* const var = reinterpret_cast<const Var*>(node);
        return static_cast<int>(var->varno) == sought.number && var->varlevelsup == sought.depth &&
               var->varattno == InvalidAttrNumber;
    }
    if (IsA(node, Query)) {
        ++sought.depth;
        const bool found = walk_query(reinterpret_cast<Query*>(node), takes_whole_row, context);
        --sought.depth;
        return found;
    }
    return walk_expression(node, takes_whole_row, context);
}

/// Whether each row of the result is of one row of each table in FROM, and may have more columns.
bool keeps_rows(const Query* query) {
    return query->commandType == CMD_SELECT && query->utilityStmt == nullptr &&
           query->setOperations == nullptr && query->distinctClause == NIL &&
           query->groupClause == NIL && query->groupingSets == NIL &&
           query->havingQual == nullptr && !query->hasAggs && !query->hasTargetSRFs &&
           query->rowMarks == NIL && list_length(query->targetList) <= kMostColumns;
}

/// A system column that may be added to a query.
struct SystemColumn {
    AttrNumber number;
    Oid type;
};

/// In the order in which they are added: the first ones are.
constexpr SystemColumn kSystemColumns[] = {{MinTransactionIdAttributeNumber, XIDOID},
                                           {SelfItemPointerAttributeNumber, TIDOID},
                                           {TableOidAttributeNumber, OIDOID}};

/// Columns of a table or subquery in FROM that are to be added to the query's.
struct AddedColumns {
    AttrNumber numbers[std::size(kSystemColumns)];
};

AttrNumber add_columns(Query* query, AttrNumber column, VersionedTable& table);

/// What to add is known of a table; whether it is.
bool find_in_table(const RangeTblEntry* from, AttrNumber attribute, VersionedTable& table,
                   AddedColumns& added) {
    VersionedTable found{from->relid, from->inh && has_subclass(from->relid), attribute};
    if (!is_stored(found.relation, attribute) || !has_row_versions(found)) return false;
    // A child may come until the query is planned.
    if (!removes_what_snapshots_see()) found.columns = from->inh ? 3 : 2;
    for (int i = 0; i < found.columns; ++i) added.numbers[i] = kSystemColumns[i].number;
    table = found;
    return true;
}

/// What to add is, among the columns of the table or subquery that the value is a column of;
/// whether it is known.
bool find_columns(Query* query, const Var* value, VersionedTable& table, AddedColumns& added) {
    const RangeTblEntry* const from = rt_fetch(value->varno, query->rtable);
    if (from->rtekind == RTE_RELATION) return find_in_table(from, value->varattno, table, added);
    if (from->rtekind != RTE_SUBQUERY) return false;
    SoughtTable sought{static_cast<int>(value->varno), 0};
    if (walk_query(query, takes_whole_row, &sought)) return false;
    const AttrNumber first = add_columns(from->subquery, value->varattno, table);
    if (first == InvalidAttrNumber) return false;
    for (int i = 0; i < table.columns; ++i) {
        from->eref->colnames = lappend(from->eref->colnames, makeString(pstrdup(kName)));
        added.numbers[i] = static_cast<AttrNumber>(first + i);
    }
    return true;
}

const Var* plain_column(const TargetEntry* entry) {
    const Node* value = reinterpret_cast<const Node*>(entry->expr);
    while (value != nullptr && IsA(value, RelabelType))
        value = reinterpret_cast<const Node*>(reinterpret_cast<const RelabelType*>(value)->arg);
    if (value == nullptr || !IsA(value, Var)) return nullptr;
    const auto* const var = reinterpret_cast<const Var*>(value);
    return var->varlevelsup == 0 && var->varattno > 0 ? var : nullptr;
}

/// Puts a column behind those of the result, before what the query only sorts by. Returns its
/// place.
AttrNumber insert_column(Query* query, Var* value) {
    int place = 0;
    ListCell* cell;
    foreach (cell, query->targetList) {
        auto* const entry = static_cast<TargetEntry*>(lfirst(cell));
        if (entry->resjunk)
            ++entry->resno;
        else
            ++place;
    }
    TargetEntry* const entry = makeTargetEntry(
        reinterpret_cast<Expr*>(value), static_cast<AttrNumber>(place + 1), pstrdup(kName), false);
    query->targetList = list_insert_nth(query->targetList, place, entry);
    return entry->resno;
}

/// A column beside the value. It is null where the value is, on the side of an outer join that has
/// no row.
Var* beside(const Var* value, AttrNumber number, Oid type) {
    Var* const added = static_cast<Var*>(copyObjectImpl(value));
    added->varattno = added->varattnosyn = number;
    added->varnosyn = added->varno;
    added->vartype = type;
    added->vartypmod = -1;
    added->varcollid = InvalidOid;
    return added;
}

/// Adds the system columns of the row that the column's values are of to the query's columns, or
/// leaves all as it is. Returns the place of the first, 0 for none.
AttrNumber add_columns(Query* query, AttrNumber column, VersionedTable& table) {
    check_stack_depth();
    if (!keeps_rows(query)) return InvalidAttrNumber;
    const TargetEntry* const entry = get_tle_by_resno(query->targetList, column);
    if (entry == nullptr || entry->resjunk) return InvalidAttrNumber;
    const Var* const value = plain_column(entry);
    if (value == nullptr) return InvalidAttrNumber;
    AddedColumns added{};
    if (!find_columns(query, value, table, added)) return InvalidAttrNumber;
    AttrNumber last = InvalidAttrNumber;
    for (int i = 0; i < table.columns; ++i)
        last = insert_column(query, beside(value, added.numbers[i], kSystemColumns[i].type));
    return static_cast<AttrNumber>(last - table.columns + 1);
}

const TargetEntry* last_column(const Query* query) {
    const TargetEntry* last = nullptr;
    ListCell* cell;
    foreach (cell, query->targetList) {
        const auto* const entry = static_cast<const TargetEntry*>(lfirst(cell));
        if (!entry->resjunk) last = entry;
    }
    return last;
}

// ---- Transactions ----

std::uint64_t next_transaction() {
    return U64FromFullTransactionId(ReadNextFullTransactionId());
}

std::uint64_t since_of_tuple(HeapTuple tuple, std::uint64_t next) {
    if (!HeapTupleIsValid(tuple)) return kUnknownTransaction;
    const std::uint64_t since = latest_it_can_be(HeapTupleHeaderGetRawXmin(tuple->t_data), next);
    ReleaseSysCache(tuple);
    return since;
}

}  // namespace

bool has_row_versions(const VersionedTable& table) {
    // Another module's scans need not have system columns.
    if (!only_own_paths() || !is_heap(table.relation)) return false;
    if (!table.with_children && !(table.tells_children() && has_subclass(table.relation)))
        return true;
    List* const family = family_of(table);
    bool all = true;
    ListCell* cell;
    foreach (cell, family) all = all && is_heap(lfirst_oid(cell));
    list_free(family);
    return all;
}

RowOrigin RowOrigins::of(const Datum* values, const bool* nulls, bool value_in_row) {
    if (!known() || nulls[first_]) return {};
    const Datum* const system = values + first_;
    RowPlace found;
    if (table_.has_places())
        found = place(table_.tells_children() ? DatumGetObjectId(system[2]) : table_.relation,
                      reinterpret_cast<ItemPointer>(DatumGetPointer(system[1])));
    return {DatumGetTransactionId(system[0]), found, value_in_row};
}

/// Not known for a relation that has no places. `relation` is the table or one of its children.
RowPlace RowOrigins::place(Oid relation, ItemPointer row) {
    if (relation != last_) {
        last_ = relation;
        last_attribute_ = table_.attribute;
        if (!is_heap(relation))
            last_attribute_ = InvalidAttrNumber;
        else if (relation != table_.relation)
            last_attribute_ =
                get_attnum(relation, get_attname(table_.relation, table_.attribute, false));
    }
    if (last_attribute_ == InvalidAttrNumber) return {};
    return {relation, last_attribute_, *row};
}

VersionedTable add_row_columns(Query* query, int column) {
    VersionedTable table;
    if (add_columns(query, static_cast<AttrNumber>(column + 1), table) == InvalidAttrNumber)
        table = {};
    return table;
}

VersionedTable add_row_columns(CachedPlanSource& prepared, int column) {
    MemoryContext before = MemoryContextSwitchTo(prepared.query_context);
    const VersionedTable table =
        add_row_columns(static_cast<Query*>(linitial(prepared.query_list)), column);
    MemoryContextSwitchTo(before);
    return table;
}

bool has_row_columns(const CachedPlanSource& prepared) {
    const TargetEntry* const last =
        last_column(static_cast<const Query*>(linitial(prepared.query_list)));
    return last != nullptr && last->resname != nullptr && strcmp(last->resname, kName) == 0;
}

std::uint64_t latest_it_can_be(TransactionId id, std::uint64_t next) {
    if (!TransactionIdIsNormal(id)) return kUnknownTransaction;
    constexpr std::uint64_t kEpoch = std::uint64_t{1} << 32;
    const std::uint64_t now = (next & ~(kEpoch - 1)) | id;
    if (now <= next) return now;
    return now >= kEpoch ? now - kEpoch : kUnknownTransaction;
}

std::uint64_t horizon() {
    if (!ActiveSnapshotSet() || removes_what_snapshots_see()) return 0;
    const Snapshot snapshot = GetActiveSnapshot();
    if (snapshot->snapshot_type != SNAPSHOT_MVCC) return 0;
    const std::uint64_t oldest = latest_it_can_be(snapshot->xmin, next_transaction());
    return oldest == kUnknownTransaction ? 0 : oldest;
}

RowVersions::RowVersions()
    : next_(next_transaction()),
      database_(
          since_of_tuple(SearchSysCache1(DATABASEOID, ObjectIdGetDatum(MyDatabaseId)), next_)) {}

std::uint64_t RowVersions::since_of(Oid table) {
    Known& known = known_[table % kTables];
    if (known.table != table)
        known = {table, since_of_tuple(SearchSysCache1(RELOID, ObjectIdGetDatum(table)), next_)};
    return known.since;
}

std::uint64_t RowVersions::since(TransactionId row, Oid table) {
    if (!OidIsValid(table)) return kUnknownTransaction;
    return std::max({latest_it_can_be(row, next_), since_of(table), database_});
}

}  // namespace gputext
