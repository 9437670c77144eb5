#include "extension/operators/distance_index.hpp"

extern "C" {
#include "access/amapi.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/index.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_class.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc.h"
#include "lib/stringinfo.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/plannodes.h"
#include "optimizer/plancat.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/relcache.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"
}

#include <optional>

#include "extension/base/local_setting.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/base/table_rights.hpp"
#include "extension/types/distance_names.hpp"

namespace gputext {
namespace {

// ---- The operator ----

/// The operator that orders the first column's rows; InvalidOid for none.
Oid ordering_operator(Relation index) {
    const Oid operand = index->rd_opcintype[0];
    CatCList* const members =
        SearchSysCacheList1(AMOPSTRATEGY, ObjectIdGetDatum(index->rd_opfamily[0]));
    Oid found = InvalidOid;
    for (int i = 0; i < members->n_members && !OidIsValid(found); ++i) {
        const auto* member =
            reinterpret_cast<const FormData_pg_amop*>(GETSTRUCT(&members->members[i]->tuple));
        if (member->amoppurpose == AMOP_ORDER && member->amoplefttype == operand)
            found = member->amopopr;
    }
    ReleaseSysCacheList(members);
    return found;
}

/// The metric of an operator of the extension vector that is a distance.
std::optional<Metric> metric_of(Oid operator_oid) {
    if (!belongs_to_extension(OperatorRelationId, operator_oid, "vector")) return std::nullopt;
    return metric_of_operator(get_opname(operator_oid));
}

void set_operator(Relation relation, DistanceIndex& index) {
    const Oid operator_oid = ordering_operator(relation);
    if (!OidIsValid(operator_oid))
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("index %s does not return rows by a distance", index.name),
                        errdetail("Its operator class has no ordering operator."),
                        errhint("knn_recall is for indexes such as pgvector's hnsw and ivfflat.")));
    Oid left, right;
    op_input_types(operator_oid, &left, &right);
    const std::optional<VectorType> vectors = vector_type_of(left);
    const std::optional<Metric> metric = metric_of(operator_oid);
    if (!vectors || left != right || !metric)
        ereport(ERROR,
                (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                 errmsg("index %s is ordered by an operator that is no known distance of vectors",
                        index.name),
                 errdetail("The operator is %s.", format_operator(operator_oid)),
                 errhint("Known are <->, <=>, <#> and <+> of pgvector's types vector, halfvec and "
                         "sparsevec.")));
    index.operand = left;
    index.vectors = *vectors;
    index.metric = *metric;
}

// ---- What its expressions call ----

bool is_foreign(Oid function, void*) {
    return function >= FirstNormalObjectId &&
           !belongs_to_extension(ProcedureRelationId, function, "vector");
}

/// Whether an expression calls functions that are neither PostgreSQL's nor pgvector's. A domain's
/// conditions may call any.
bool calls_foreign(Node* node, void* context) {
    if (node == nullptr) return false;
    if (IsA(node, CoerceToDomain) || check_functions_in_node(node, is_foreign, context))
        return true;
    return walk_expression(node, calls_foreign, context);
}

// ---- The queries ----

const char* qualified_name(Oid relation) {
    return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)),
                                      get_rel_name(relation));
}

/// The first column of the index, as an expression in parentheses.
const char* indexed_expression(Relation relation, List* context) {
    const AttrNumber column = relation->rd_index->indkey.values[0];
    if (column != InvalidAttrNumber)
        return psprintf("(%s)",
                        quote_identifier(get_attname(relation->rd_index->indrelid, column, false)));
    auto* const expression = static_cast<Node*>(linitial(RelationGetIndexExpressions(relation)));
    return psprintf("(%s)", deparse_expression(expression, context, false, false));
}

/// The index's predicate as a condition behind WHERE; null where it has none.
const char* predicate_of(Relation relation, List* context) {
    List* const predicate = RelationGetIndexPredicate(relation);
    if (predicate == NIL) return nullptr;
    auto* const all = reinterpret_cast<Node*>(make_ands_explicit(predicate));
    return psprintf("(%s)", deparse_expression(all, context, false, false));
}

void set_queries(Relation relation, Oid operator_oid, DistanceIndex& index) {
    List* const context = deparse_context_for(get_rel_name(index.table), index.table);
    const char* const vector = indexed_expression(relation, context);
    const char* const table = qualified_name(index.table);
    const char* const predicate = predicate_of(relation, context);
    HeapTuple tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(operator_oid));
    if (!HeapTupleIsValid(tuple))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("the operator of index %s does not exist any more", index.name)));
    const auto* const row = reinterpret_cast<const FormData_pg_operator*>(GETSTRUCT(tuple));
    const char* const schema = quote_identifier(get_namespace_name(row->oprnamespace));
    // The access methods leave out rows whose vector is null.
    index.all_rows =
        psprintf("SELECT ctid, %s FROM ONLY %s WHERE %s IS NOT NULL%s%s", vector, table, vector,
                 predicate != nullptr ? " AND " : "", predicate != nullptr ? predicate : "");
    index.nearest =
        psprintf("SELECT ctid FROM ONLY %s%s%s ORDER BY %s OPERATOR(%s.%s) $1", table,
                 predicate != nullptr ? " WHERE " : "", predicate != nullptr ? predicate : "",
                 vector, schema, NameStr(row->oprname));
    ReleaseSysCache(tuple);
}

// ---- The index ----

void check_kind(Oid index) {
    const char kind = get_rel_relkind(index);
    if (kind == RELKIND_INDEX) return;
    if (kind == '\0')
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("there is no relation with OID %u", index)));
    if (kind == RELKIND_PARTITIONED_INDEX)
        ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                        errmsg("index %s is of a partitioned table", qualified_name(index)),
                        errhint("Name the index of one of its partitions.")));
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE),
                    errmsg("%s is not an index", qualified_name(index))));
}

}  // namespace

DistanceIndex distance_index(Oid oid) {
    check_kind(oid);
    DistanceIndex index{};
    index.index = oid;
    index.name = qualified_name(oid);
    index.table = IndexGetRelation(oid, true);
    const Relation table =
        OidIsValid(index.table) ? try_table_open(index.table, AccessShareLock) : nullptr;
    if (table == nullptr)
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                        errmsg("index %s has been dropped", index.name)));
    // Constants in expressions are folded when these are read.
    AsOwner as_owner(table->rd_rel->relowner);
    const Relation relation = index_open(oid, AccessShareLock);
    if (!relation->rd_index->indisvalid)
        ereport(ERROR,
                (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                 errmsg("index %s is not valid", index.name), errhint("REINDEX makes it valid.")));
    set_operator(relation, index);
    set_queries(relation, ordering_operator(relation), index);
    if (calls_foreign(reinterpret_cast<Node*>(RelationGetIndexExpressions(relation)), nullptr) ||
        calls_foreign(reinterpret_cast<Node*>(RelationGetIndexPredicate(relation)), nullptr))
        index.evaluator = table->rd_rel->relowner;
    as_owner.end();
    index_close(relation, NoLock);
    table_close(table, NoLock);
    return index;
}

// ---- Searches ----

namespace {

// ---- What the planner sees ----

/// The index that the planner may use, and its table; none while no search is planned.
struct OnlyIndex {
    Oid table = InvalidOid;
    Oid index = InvalidOid;
};

OnlyIndex only_index;

void leave_only_index(Oid table, RelOptInfo* relation) {
    if (!OidIsValid(only_index.table) || table != only_index.table) return;
    List* left = NIL;
    ListCell* cell;
    foreach (cell, relation->indexlist) {
        auto* const index = static_cast<IndexOptInfo*>(lfirst(cell));
        if (index->indexoid == only_index.index) left = lappend(left, index);
    }
    relation->indexlist = left;
}

void add_hook() {
    static bool added = false;
    if (added) return;
    watch_listed_indexes<leave_only_index>();
    added = true;
}

/// Until the context is reset; a search within a search leaves the outer one's index behind.
void show_only(const OnlyIndex& index, MemoryContext context) {
    struct Before {
        MemoryContextCallback callback;
        OnlyIndex index;
    };
    auto* const before = static_cast<Before*>(MemoryContextAllocZero(context, sizeof(Before)));
    before->index = only_index;
    before->callback.arg = before;
    before->callback.func = [](void* saved) { only_index = static_cast<Before*>(saved)->index; };
    MemoryContextRegisterResetCallback(context, &before->callback);
    add_hook();
    only_index = index;
}

// ---- The plan ----

/// The scan that rows come from without being sorted.
const Plan* source_of(const Plan* plan) {
    while (plan != nullptr) {
        switch (nodeTag(plan)) {
            case T_Limit:
            case T_Result:
                plan = plan->lefttree;
                break;
            case T_SubqueryScan:
                plan = reinterpret_cast<const SubqueryScan*>(plan)->subplan;
                break;
            default:
                return plan;
        }
    }
    return nullptr;
}

bool is_by(const Plan* plan, Oid index) {
    if (plan == nullptr || !IsA(plan, IndexScan)) return false;
    const auto* const scan = reinterpret_cast<const IndexScan*>(plan);
    return scan->indexid == index && scan->indexorderby != NIL;
}

void check_plan(Portal portal, const DistanceIndex& index, const char* sql) {
    const auto* const statement = static_cast<const PlannedStmt*>(linitial(portal->stmts));
    if (is_by(source_of(statement->planTree), index.index)) return;
    ereport(ERROR,
            (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
             errmsg("the planner does not take the nearest rows from index %s", index.name),
             errdetail("The statement is: %s", sql),
             errhint("EXPLAIN shows the plan. An index that was created while its table was being "
                     "changed is of use to later transactions only.")));
}

}  // namespace

IndexSearch::IndexSearch(const DistanceIndex& index, std::uint32_t k, MemoryContext context)
    : index_(index), k_(k), settings_(NewGUCNestLevel()) {
    sql_ = MemoryContextStrdup(context, psprintf("%s LIMIT %u", index.nearest, k));
    set_locally("enable_seqscan", "off");
    set_locally("enable_bitmapscan", "off");
    set_locally("enable_indexscan", "on");
    // The index is what is to be measured.
    set_locally("gputext.plan_nearest", "off");
    set_locally("max_parallel_workers_per_gather", "0");
    show_only({index.table, index.index}, context);
    SPI_connect();
    Oid type = index.operand;
    plan_ = SPI_prepare_cursor(sql_, 1, &type, CURSOR_OPT_GENERIC_PLAN);
    if (plan_ == nullptr)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("could not search by index %s: %s", index.name,
                               SPI_result_code_string(SPI_result))));
}

std::uint32_t IndexSearch::nearest(Datum query, ItemPointerData* rows) {
    const Portal portal = SPI_cursor_open(nullptr, plan_, &query, nullptr, true);
    check_plan(portal, index_, sql_);
    SPI_cursor_fetch(portal, true, static_cast<long>(k_));
    const auto count = static_cast<std::uint32_t>(SPI_processed);
    for (std::uint32_t i = 0; i < count; ++i) {
        bool null;
        const Datum place = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &null);
        ItemPointerCopy(reinterpret_cast<ItemPointer>(DatumGetPointer(place)), rows + i);
    }
    SPI_freetuptable(SPI_tuptable);
    SPI_cursor_close(portal);
    return count;
}

void IndexSearch::end() {
    SPI_finish();
    only_index = {};
    AtEOXact_GUC(true, settings_);
}

}  // namespace gputext
