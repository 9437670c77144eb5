#include "extension/rows/row_versions.hpp"

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
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
}

#include <algorithm>

#include "extension/base/server_versions.hpp"

namespace gputext {
namespace {

/// Longer than any name that a query can give a column.
const char kName[] = "the transaction that made the row which the value is of, as gputext asks for";
static_assert(sizeof kName > NAMEDATALEN);

/// Columns beyond which none is added.
constexpr int kMostColumns = MaxHeapAttributeNumber;

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

/// Another module's scans need not have system columns.
bool only_own_scans() {
    return set_rel_pathlist_hook == nullptr && set_join_pathlist_hook == nullptr;
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
           query->rowMarks == NIL && list_length(query->targetList) < kMostColumns;
}

AttrNumber add_version(Query* query, AttrNumber column, VersionedTable& table);

/// Where the version is among the columns of the table that the value is a column of; 0 where it is
/// not known.
AttrNumber version_in(Query* query, const Var* value, VersionedTable& table) {
    const RangeTblEntry* const from = rt_fetch(value->varno, query->rtable);
    if (from->rtekind == RTE_RELATION) {
        const VersionedTable found{from->relid, from->inh};
        if (!is_stored(found.relation, value->varattno) || !has_row_versions(found))
            return InvalidAttrNumber;
        table = found;
        return MinTransactionIdAttributeNumber;
    }
    if (from->rtekind != RTE_SUBQUERY) return InvalidAttrNumber;
    SoughtTable sought{static_cast<int>(value->varno), 0};
    if (walk_query(query, takes_whole_row, &sought)) return InvalidAttrNumber;
    const AttrNumber place = add_version(from->subquery, value->varattno, table);
    if (place != InvalidAttrNumber)
        from->eref->colnames = lappend(from->eref->colnames, makeString(pstrdup(kName)));
    return place;
}

const Var* plain_column(const TargetEntry* entry) {
    const Node* value = reinterpret_cast<const Node*>(entry->expr);
    while (value != nullptr && IsA(value, RelabelType))
        value = reinterpret_cast<const Node*>(reinterpret_cast<const RelabelType*>(value)->arg);
    if (value == nullptr || !IsA(value, Var)) return nullptr;
    const auto* const var = reinterpret_cast<const Var*>(value);
    return var->varlevelsup == 0 && var->varattno > 0 ? var : nullptr;
}

/// Puts the version behind the columns of the result, before what the query only sorts by. Returns
/// its place.
AttrNumber insert_version(Query* query, Var* version) {
    int place = 0;
    ListCell* cell;
    foreach (cell, query->targetList) {
        auto* const entry = static_cast<TargetEntry*>(lfirst(cell));
        if (entry->resjunk)
            ++entry->resno;
        else
            ++place;
    }
    TargetEntry* const entry =
        makeTargetEntry(reinterpret_cast<Expr*>(version), static_cast<AttrNumber>(place + 1),
                        pstrdup(kName), false);
    query->targetList = list_insert_nth(query->targetList, place, entry);
    return entry->resno;
}

/// Adds the version of the column's values to the query's columns, or leaves all as it is. Returns
/// its place, 0 for none.
AttrNumber add_version(Query* query, AttrNumber column, VersionedTable& table) {
    check_stack_depth();
    if (!keeps_rows(query)) return InvalidAttrNumber;
    const TargetEntry* const entry = get_tle_by_resno(query->targetList, column);
    if (entry == nullptr || entry->resjunk) return InvalidAttrNumber;
    const Var* const value = plain_column(entry);
    if (value == nullptr) return InvalidAttrNumber;
    const AttrNumber place = version_in(query, value, table);
    if (place == InvalidAttrNumber) return InvalidAttrNumber;
    // A copy is null where the value is, on the side of an outer join that has no row.
    Var* const version = static_cast<Var*>(copyObjectImpl(value));
    version->varattno = version->varattnosyn = place;
    version->varnosyn = version->varno;
    version->vartype = XIDOID;
    version->vartypmod = -1;
    version->varcollid = InvalidOid;
    return insert_version(query, version);
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
    if (!only_own_scans() || !is_heap(table.relation)) return false;
    if (!table.with_children) return true;
    // The executor takes the locks that it needs.
    List* const family = find_all_inheritors(table.relation, NoLock, nullptr);
    bool all = true;
    ListCell* cell;
    foreach (cell, family) all = all && is_heap(lfirst_oid(cell));
    list_free(family);
    return all;
}

VersionedTable add_row_version(CachedPlanSource& prepared, int column) {
    VersionedTable table;
    MemoryContext before = MemoryContextSwitchTo(prepared.query_context);
    auto* const query = static_cast<Query*>(linitial(prepared.query_list));
    if (add_version(query, static_cast<AttrNumber>(column + 1), table) == InvalidAttrNumber)
        table = {};
    MemoryContextSwitchTo(before);
    return table;
}

bool has_row_version(const CachedPlanSource& prepared) {
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

std::uint64_t RowVersions::since_of(Oid toast_table) {
    Known& known = known_[toast_table % kTables];
    if (known.table != toast_table)
        known = {toast_table,
                 since_of_tuple(SearchSysCache1(RELOID, ObjectIdGetDatum(toast_table)), next_)};
    return known.since;
}

std::uint64_t RowVersions::since(TransactionId row, Oid toast_table) {
    if (!OidIsValid(toast_table)) return kUnknownTransaction;
    return std::max({latest_it_can_be(row, next_), since_of(toast_table), database_});
}

}  // namespace gputext
