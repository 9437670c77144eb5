// extension/base/server_versions.hpp - what releases of PostgreSQL do differently
//
// Whatever depends on the release is here and in postgres.hpp, under a name that says what it is
// for.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/amapi.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/relscan.h"
#include "access/tableam.h"
#include "access/toast_internals.h"
#include "access/tupdesc.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_proc.h"
#include "commands/vacuum.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "optimizer/cost.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "tsearch/ts_locale.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
}

namespace gputext {

/// The number of this session's process, from 0 to below MaxBackends: unlike any other's that runs
/// at the same time.
inline int session_number() {
#if PG_VERSION_NUM >= 170000
    return MyProcNumber;
#else
    return MyBackendId - 1;
#endif
}

/// Whether the current user owns the relation, or is a superuser.
inline bool owns_relation(Oid relation) {
#if PG_VERSION_NUM >= 160000
    return object_ownercheck(RelationRelationId, relation, GetUserId());
#else
    return pg_class_ownercheck(relation, GetUserId());
#endif
}

/// Whether the current user owns the database, or is a superuser.
inline bool owns_database(Oid database) {
#if PG_VERSION_NUM >= 160000
    return object_ownercheck(DatabaseRelationId, database, GetUserId());
#else
    return pg_database_ownercheck(database, GetUserId());
#endif
}

/// All settings that the session knows, by their number.
inline config_generic** all_settings(int& count) {
#if PG_VERSION_NUM >= 160000
    return get_guc_variables(&count);
#else
    count = GetNumConfigOptions();
    return get_guc_variables();
#endif
}

/// What maintenance commands do to search_path before they evaluate expressions of a table.
inline void restrict_search_path() {
#if PG_VERSION_NUM >= 170000
    RestrictSearchPath();
#endif
}

/// Whether the current user may use the foreign server.
inline bool may_use_server(Oid server) {
#if PG_VERSION_NUM >= 160000
    return object_aclcheck(ForeignServerRelationId, server, GetUserId(), ACL_USAGE) == ACLCHECK_OK;
#else
    return pg_foreign_server_aclcheck(server, GetUserId(), ACL_USAGE) == ACLCHECK_OK;
#endif
}

/// Whether the current user may call the function.
inline bool may_call(Oid function) {
#if PG_VERSION_NUM >= 160000
    return object_aclcheck(ProcedureRelationId, function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
#else
    return pg_proc_aclcheck(function, GetUserId(), ACL_EXECUTE) == ACLCHECK_OK;
#endif
}

/// What WaitEventSetWait() waits for, at most so many events. The end of the transaction frees it
/// where an error keeps FreeWaitEventSet() from being called.
inline WaitEventSet* new_wait_event_set(int events) {
#if PG_VERSION_NUM >= 170000
    return CreateWaitEventSet(CurrentResourceOwner, events);
#else
    return CreateWaitEventSet(CurrentMemoryContext, events);
#endif
}

/// A new kind of locks in shared memory, under the name that pg_stat_activity shows.
inline int new_kind_of_locks([[maybe_unused]] const char* name) {
#if PG_VERSION_NUM >= 190000
    return LWLockNewTrancheId(name);
#else
    return LWLockNewTrancheId();
#endif
}

/// Tells this process the name of a kind of locks that any process made, where the server does not
/// keep it.
inline void name_kind_of_locks([[maybe_unused]] int kind, [[maybe_unused]] const char* name) {
#if PG_VERSION_NUM < 190000
    LWLockRegisterTranche(kind, name);
#endif
}

/// Whether extension/texts/plain_text.hpp has been compared with the release's default parser.
inline constexpr bool kKnowsDefaultParser = PG_VERSION_NUM < 200000;

/// Whether the character of the server's encoding is a letter or a digit.
inline bool is_letter_or_digit(const char* character) {
#if PG_VERSION_NUM >= 180000
    return t_isalnum(character);
#else
    return t_isalpha(character) || t_isdigit(character);
#endif
}

using TreeWalker = bool (*)(Node*, void*);

/// expression_tree_walker(), a macro since PostgreSQL 16. Before, it takes a walker of any kind.
inline bool walk_expression(Node* node, TreeWalker walker, void* context) {
#if PG_VERSION_NUM >= 160000
    return expression_tree_walker(node, walker, context);
#else
    const auto any = reinterpret_cast<void (*)()>(walker);
    return expression_tree_walker(node, reinterpret_cast<bool (*)()>(any), context);
#endif
}

/// query_tree_walker(), of the whole query.
inline bool walk_query(Query* query, TreeWalker walker, void* context) {
#if PG_VERSION_NUM >= 160000
    return query_tree_walker(query, walker, context, 0);
#else
    const auto any = reinterpret_cast<void (*)()>(walker);
    return query_tree_walker(query, reinterpret_cast<bool (*)()>(any), context, 0);
#endif
}

using TreeMutator = Node* (*)(Node*, void*);

/// expression_tree_mutator(), the same.
inline Node* mutate_expression(Node* node, TreeMutator mutator, void* context) {
#if PG_VERSION_NUM >= 160000
    return expression_tree_mutator(node, mutator, context);
#else
    const auto any = reinterpret_cast<void (*)()>(mutator);
    return expression_tree_mutator(node, reinterpret_cast<Node* (*)()>(any), context);
#endif
}

/// Runs a statement to its end; once, so that it may use parallel workers.
inline void run_to_end(QueryDesc* statement) {
#if PG_VERSION_NUM >= 180000
    ExecutorRun(statement, ForwardScanDirection, 0);
#else
    ExecutorRun(statement, ForwardScanDirection, 0, true);
#endif
}

/// Runs a statement within another one to its end: the hooks of other modules are not called.
inline void run_part_to_end(QueryDesc* statement) {
#if PG_VERSION_NUM >= 180000
    standard_ExecutorRun(statement, ForwardScanDirection, 0);
#else
    standard_ExecutorRun(statement, ForwardScanDirection, 0, true);
#endif
}

/// Says that a path takes no plan that the settings discourage.
inline void set_no_disabled_nodes([[maybe_unused]] Path* path) {
#if PG_VERSION_NUM >= 180000
    path->disabled_nodes = 0;
#endif
}

/// A copy of a table's entry in the range table that says nothing of rights: those are checked
/// elsewhere.
inline RangeTblEntry* entry_without_rights(const RangeTblEntry* entry) {
    auto* const copy = static_cast<RangeTblEntry*>(copyObjectImpl(entry));
    copy->securityQuals = NIL;
#if PG_VERSION_NUM >= 160000
    copy->perminfoindex = 0;
#else
    copy->requiredPerms = 0;
#endif
    return copy;
}

/// Has the plan of a query ask for no rights to tables: another plan, that is executed together
/// with it, has them.
inline void leave_rights_out(PlannedStmt* statement) {
    ListCell* cell;
    foreach (cell, statement->rtable) {
        auto* const entry = static_cast<RangeTblEntry*>(lfirst(cell));
#if PG_VERSION_NUM >= 160000
        entry->perminfoindex = 0;
#else
        entry->requiredPerms = 0;
#endif
    }
#if PG_VERSION_NUM >= 160000
    statement->permInfos = NIL;
#endif
}

/// Whether VACUUM may remove rows that a snapshot in use can see (old_snapshot_threshold).
inline bool removes_what_snapshots_see() {
#if PG_VERSION_NUM >= 170000
    return false;
#else
    return old_snapshot_threshold >= 0;
#endif
}

/// What the executor checks before it runs a statement: whether the users have the rights to its
/// tables. Raises the error of those who do not.
inline void check_rights(const PlannedStmt* statement) {
#if PG_VERSION_NUM >= 160000
    ExecCheckPermissions(statement->rtable, statement->permInfos, true);
#else
    ExecCheckRTPerms(statement->rtable, true);
#endif
}

/// Whether the operator, or the one that it negates, belongs to an order of its type.
inline bool is_ordering_operator(Oid oper) {
#if PG_VERSION_NUM >= 180000
    return get_op_index_interpretation(oper) != NIL;
#else
    return get_op_btree_interpretation(oper) != NIL;
#endif
}

/// Whether a column of the relation, which is locked, is computed when it is read.
inline bool computes_columns([[maybe_unused]] Oid relation) {
#if PG_VERSION_NUM >= 180000
    const Relation opened = relation_open(relation, NoLock);
    const TupleConstr* const constraints = RelationGetDescr(opened)->constr;
    const bool computes = constraints != nullptr && constraints->has_generated_virtual;
    relation_close(opened, NoLock);
    return computes;
#else
    return false;
#endif
}

/// Where the pages of a relation lie: another place after each command that rewrites it.
#if PG_VERSION_NUM >= 160000
using RelationFiles = RelFileLocator;
inline RelationFiles files_of(Relation relation) {
    return relation->rd_locator;
}
inline bool same_files(const RelationFiles& a, const RelationFiles& b) {
    return RelFileLocatorEquals(a, b);
}
#else
using RelationFiles = RelFileNode;
inline RelationFiles files_of(Relation relation) {
    return relation->rd_node;
}
inline bool same_files(const RelationFiles& a, const RelationFiles& b) {
    return RelFileNodeEquals(a, b);
}
#endif

/// Drops what shared buffers have of the relation's pages, also of those that others read just now.
inline void drop_buffers(Relation relation) {
    ForkNumber fork = MAIN_FORKNUM;
    BlockNumber first = 0;
#if PG_VERSION_NUM >= 160000
    DropRelationBuffers(RelationGetSmgr(relation), &fork, 1, &first);
#else
    DropRelFileNodeBuffers(RelationGetSmgr(relation), &fork, 1, &first);
#endif
}

/// Whether this transaction has made the relation, or given it other files.
inline bool has_new_files(Relation relation) {
#if PG_VERSION_NUM >= 160000
    return relation->rd_createSubid != InvalidSubTransactionId ||
           relation->rd_newRelfilelocatorSubid != InvalidSubTransactionId ||
           relation->rd_firstRelfilelocatorSubid != InvalidSubTransactionId;
#else
    return relation->rd_createSubid != InvalidSubTransactionId ||
           relation->rd_newRelfilenodeSubid != InvalidSubTransactionId ||
           relation->rd_firstRelfilenodeSubid != InvalidSubTransactionId;
#endif
}

/// The snapshot by which values in TOAST tables are read; in `room`, where the server keeps none.
inline Snapshot snapshot_of_values([[maybe_unused]] SnapshotData& room) {
#if PG_VERSION_NUM >= 180000
    return get_toast_snapshot();
#else
    init_toast_snapshot(&room);
    return &room;
#endif
}

/// Tells the statistics that a search of an index begins.
inline void count_index_search(IndexScanDesc scan) {
    pgstat_count_index_scan(scan->indexRelation);
#if PG_VERSION_NUM >= 180000
    if (scan->instrument != nullptr) ++scan->instrument->nsearches;
#endif
}

/// Lets VACUUM sleep as its settings say, and ends it when it is cancelled.
inline void delay_vacuum() {
#if PG_VERSION_NUM >= 180000
    vacuum_delay_point(false);
#else
    vacuum_delay_point();
#endif
}

/// A tuple of these values, in the memory that is current.
inline MinimalTuple form_minimal_tuple(TupleDesc columns, const Datum* values, const bool* nulls) {
#if PG_VERSION_NUM >= 180000
    return heap_form_minimal_tuple(columns, values, nulls, 0);
#else
    // Before PostgreSQL 16 the arrays are not declared const, though they are only read.
    return heap_form_minimal_tuple(columns, const_cast<Datum*>(values), const_cast<bool*>(nulls));
#endif
}

/// A copy of the first columns.
inline TupleDesc first_columns(TupleDesc columns, int count) {
    const TupleDesc copy = CreateTemplateTupleDesc(count);
    for (int column = 1; column <= count; ++column)
        TupleDescCopyEntry(copy, static_cast<AttrNumber>(column), columns,
                           static_cast<AttrNumber>(column));
#if PG_VERSION_NUM >= 190000
    TupleDescFinalize(copy);
#endif
    return copy;
}

/// Which messages this process writes to the log.
inline int& log_level() {
#if PG_VERSION_NUM >= 190000
    return log_min_messages[MyBackendType];
#else
    return log_min_messages;
#endif
}

/// The number of a catalogue's cache, as callbacks of invalidations are given it.
#if PG_VERSION_NUM >= 190000
using CatalogueCache = SysCacheIdentifier;
#else
using CatalogueCache = int;
#endif

/// How a buffer is locked.
#if PG_VERSION_NUM >= 190000
using BufferLock = BufferLockMode;
#else
using BufferLock = int;
#endif

/// This process' part of a scan of the table that parallel workers share.
inline TableScanDesc begin_shared_scan(Relation table, ParallelTableScanDesc shared) {
#if PG_VERSION_NUM >= 190000
    return table_beginscan_parallel(table, shared, SO_NONE);
#else
    return table_beginscan_parallel(table, shared);
#endif
}

/// Begins a scan of an index by one value that it is ordered by, for its access method alone: also
/// of an index that is being built, which the server does not let anybody scan.
inline IndexScanDesc begin_method_scan(Relation table, Relation index, Snapshot snapshot) {
    const IndexScanDesc scan = index->rd_indam->ambeginscan(index, 0, 1);
    scan->heapRelation = table;
    scan->xs_snapshot = snapshot;
    scan->xs_temp_snap = false;
    scan->parallel_scan = nullptr;
#if PG_VERSION_NUM >= 180000
    scan->instrument = nullptr;
#endif
    return scan;
}

/// Begins to read rows of the table by their places.
inline IndexFetchTableData* begin_fetch(Relation table) {
#if PG_VERSION_NUM >= 190000
    return table_index_fetch_begin(table, SO_NONE);
#else
    return table_index_fetch_begin(table);
#endif
}

/// Puts the checksum into a page that is to be written, where the server wants one.
inline void set_checksum(Page page, BlockNumber block) {
#if PG_VERSION_NUM >= 190000
    PageSetChecksum(page, block);
#else
    PageSetChecksumInplace(page, block);
#endif
}

/// A planner is called with this. EXPLAIN's state, which PostgreSQL 19 added, is handed on.
struct PlannerCall {
    Query* query;
    const char* text;
    int options;
    ParamListInfo parameters;
#if PG_VERSION_NUM >= 190000
    ExplainState* explain = nullptr;
#endif
};

inline PlannedStmt* call_planner(planner_hook_type plan, const PlannerCall& call) {
#if PG_VERSION_NUM >= 190000
    return plan(call.query, call.text, call.options, call.parameters, call.explain);
#else
    return plan(call.query, call.text, call.options, call.parameters);
#endif
}

/// `plan` as a hook of the planner.
#if PG_VERSION_NUM >= 190000
template <PlannedStmt* (*plan)(const PlannerCall&)>
PlannedStmt* as_planner_hook(Query* query, const char* text, int options, ParamListInfo parameters,
                             ExplainState* explain) {
    return plan({query, text, options, parameters, explain});
}
#else
template <PlannedStmt* (*plan)(const PlannerCall&)>
PlannedStmt* as_planner_hook(Query* query, const char* text, int options,
                             ParamListInfo parameters) {
    return plan({query, text, options, parameters});
}
#endif

/// Has `watch` called for the tables of queries, once the planner has listed their indexes; to be
/// called once in a process.
template <void (*watch)(Oid table, RelOptInfo* relation)>
void watch_listed_indexes() {
#if PG_VERSION_NUM >= 190000
    static build_simple_rel_hook_type before = build_simple_rel_hook;
    build_simple_rel_hook = [](PlannerInfo* root, RelOptInfo* relation, RangeTblEntry* entry) {
        if (before != nullptr) before(root, relation, entry);
        watch(entry->relid, relation);
    };
#else
    static get_relation_info_hook_type before = get_relation_info_hook;
    get_relation_info_hook = [](PlannerInfo* root, Oid table, bool inherits, RelOptInfo* relation) {
        if (before != nullptr) before(root, table, inherits, relation);
        watch(table, relation);
    };
#endif
}

/// initial_cost_nestloop(), of a loop that reads the inner side anew for each outer row.
inline void cost_nested_loop(PlannerInfo* root, JoinCostWorkspace* costs, JoinType type,
                             Path* outer, Path* inner, JoinPathExtraData* extra) {
#if PG_VERSION_NUM >= 190000
    initial_cost_nestloop(root, costs, type, PGS_NESTLOOP_PLAIN, outer, inner, extra);
#else
    initial_cost_nestloop(root, costs, type, outer, inner, extra);
#endif
}

}  // namespace gputext
