#include "extension/planner/nearest_path.hpp"

#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_proc.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
}

#include <algorithm>

#include "cpp/link/device_choice.hpp"
#include "cpp/strings/nearest_strings.hpp"
#include "extension/base/path_hooks.hpp"
#include "extension/base/server_versions.hpp"
#include "extension/planner/distance_operators.hpp"
#include "extension/planner/nearest_plan.hpp"
#include "extension/planner/nearest_shape.hpp"
#include "extension/planner/nearest_statement.hpp"
#include "extension/planner/planner_run.hpp"
#include "extension/queries/bundle_plan.hpp"
#include "extension/queries/remembered_scans.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

// ---- The queries behind a path ----

/// A shape and the plans of its queries.
struct PlannedShape {
    const PlannerInfo* root;
    Index relation;
    NearestShape* shape;  // null for a subquery of another shape
    PlannedStmt* items;
    PlannedStmt* bundles;  // null for none
    VersionedTable table;
    bool parallel_safe;
    bool remembered;  // the items: by the session, when the plan is made
};

/// Those of the planner runs that are under way: the planner asks again for each order of joins.
List* planned_shapes = NIL;

/// At the end of the memory of a planner run.
void forget_shape(void* shape) {
    planned_shapes = list_delete_ptr(planned_shapes, shape);
}

/// Whether the node computes distances as items come (nearest_of_one.hpp): of one vector, and not
/// of one for each outer row.
bool is_found_while_reading(const NearestShape& shape) {
    return shape.outer == NIL && shape.distance.exact;
}

bool are_remembered(const PlannedShape& planned, ParamListInfo parameters) {
    const NearestShape& shape = *planned.shape;
    if (shape.keys != NIL || shape.distance.trigrams) return false;
    const WholeScan scan = whole_scan_of(planned.items, WholeScan::kPlace,
                                         static_cast<AttrNumber>(shape.columns + 1), parameters);
    return scan.known() && remembered_rows(scan) != nullptr;
}

void plan_shape(PlannerInfo* root, PlannedShape& planned) {
    NearestShape& shape = *planned.shape;
    planned.parallel_safe = max_parallel_hazard(shape.items) != PROPARALLEL_UNSAFE;
    if (!is_found_while_reading(shape) || !shape.distance.trigrams)
        planned.table = add_row_columns(shape.items, shape.columns);
    const auto* const items = static_cast<const Query*>(copyObjectImpl(shape.items));
    planned.items = plan_ordinarily(shape.items, root->glob->boundParams);
    // Where distances are computed as items come, they need the values.
    const bool found = is_found_while_reading(shape);
    if (planned.parallel_safe)
        planned.bundles =
            plan_bundles(items, root->glob->boundParams, *planned.items,
                         {planned.table, planned.table.known() && !found ? shape.columns : -1},
                         found ? 0 : kFewestBundled);
    planned.remembered = are_remembered(planned, root->glob->boundParams);
    // The statement's own plan has the rights to the same tables, and says so once.
    leave_rights_out(planned.items);
    if (planned.bundles != nullptr) leave_rights_out(planned.bundles);
}

PlannedShape* new_planned_shape(PlannerInfo* root, const RelOptInfo* relation) {
    // The search for an order of many joins forgets its memory again and again.
    const MemoryContext before = MemoryContextSwitchTo(root->planner_cxt);
    auto* const planned = static_cast<PlannedShape*>(palloc0(sizeof(PlannedShape)));
    planned->root = root;
    planned->relation = relation->relid;
    planned->shape = nearest_shape_of(planner_rt_fetch(relation->relid, root), relation);
    if (planned->shape != nullptr) plan_shape(root, *planned);
    auto* const callback =
        static_cast<MemoryContextCallback*>(palloc0(sizeof(MemoryContextCallback)));
    callback->func = forget_shape;
    callback->arg = planned;
    MemoryContextSwitchTo(TopMemoryContext);
    planned_shapes = lappend(planned_shapes, planned);
    MemoryContextSwitchTo(before);
    MemoryContextRegisterResetCallback(root->planner_cxt, callback);
    return planned;
}

PlannedShape* planned_shape(PlannerInfo* root, const RelOptInfo* relation) {
    ListCell* cell;
    foreach (cell, planned_shapes) {
        auto* const planned = static_cast<PlannedShape*>(lfirst(cell));
        if (planned->root == root && planned->relation == relation->relid) return planned;
    }
    return new_planned_shape(root, relation);
}

// ---- Whether a relation or join may be such a path ----

/// Whether the statement only reads, as far as its queries up to the top say. A statement that
/// changes or locks rows reads them again where others have changed them.
bool only_reads(const PlannerInfo* root) {
    for (; root != nullptr; root = root->parent_root) {
        const Query* const query = root->parse;
        const bool top = root->parent_root == nullptr;
        if (query->rowMarks != NIL || query->hasModifyingCTE ||
            (query->commandType != CMD_SELECT && !(top && query->commandType == CMD_INSERT)) ||
            query->onConflict != nullptr)
            return false;
    }
    return true;
}

bool has_pseudoconstant(List* clauses) {
    ListCell* cell;
    foreach (cell, clauses)
        if (lfirst_node(RestrictInfo, cell)->pseudoconstant) return true;
    return false;
}

/// Whether the relation is a subquery of FROM, and gives the rows of that subquery and no others.
/// The planner makes of a UNION ALL a relation for all branches, which has the place of one of them
/// or of the whole, and children of it; only for a subquery it makes a plan of its own.
bool is_whole_subquery(PlannerInfo* root, const RelOptInfo* relation) {
    return relation->rtekind == RTE_SUBQUERY && relation->reloptkind == RELOPT_BASEREL &&
           relation->subroot != nullptr && !planner_rt_fetch(relation->relid, root)->inh;
}

/// Whether the relation gives nothing but columns of its own. What else is computed there, and is
/// null above an outer join without a row, is a PlaceHolderVar.
bool gives_columns_alone(const RelOptInfo* relation) {
    ListCell* cell;
    foreach (cell, relation->reltarget->exprs) {
        const auto* const given = static_cast<const Var*>(lfirst(cell));
        if (!IsA(given, Var) || given->varattno <= 0) return false;
    }
    return true;
}

/// Whether the outer path gives the column.
bool gives_column(const Path* outer, const Var* column) {
    ListCell* cell;
    foreach (cell, outer->pathtarget->exprs) {
        const auto* const given = static_cast<const Var*>(lfirst(cell));
        if (IsA(given, Var) && given->varno == column->varno && given->varattno == column->varattno)
            return true;
    }
    return false;
}

bool gives_columns(const Path* outer, List* columns) {
    ListCell* cell;
    foreach (cell, columns)
        if (!gives_column(outer, static_cast<const Var*>(lfirst(cell)))) return false;
    return true;
}

/// Whether a whole row of the relation, or a system column, is used: the node gives plain columns.
bool uses_more_than_columns(Node* expressions, const RelOptInfo* relation) {
    ListCell* cell;
    foreach (cell, pull_var_clause(expressions, PVC_RECURSE_PLACEHOLDERS | PVC_RECURSE_AGGREGATES |
                                                    PVC_RECURSE_WINDOWFUNCS)) {
        const auto* const var = static_cast<const Var*>(lfirst(cell));
        if (static_cast<Index>(var->varno) == relation->relid && var->varattno <= 0) return true;
    }
    return false;
}

/// The cheapest plan that the planner itself has for a subquery and these outer relations; null
/// where there is none.
const SubqueryScanPath* ordinary_path(const RelOptInfo* relation, Relids outer) {
    const Path* cheapest = nullptr;
    ListCell* cell;
    foreach (cell, relation->pathlist) {
        const auto* const path = static_cast<const Path*>(lfirst(cell));
        if (IsA(path, SubqueryScanPath) && bms_is_subset(PATH_REQ_OUTER(path), outer) &&
            (cheapest == nullptr || path->total_cost < cheapest->total_cost))
            cheapest = path;
    }
    return reinterpret_cast<const SubqueryScanPath*>(cheapest);
}

/// The path whose rows a path gives, and in whose order, where it only cuts or changes them; null
/// for others.
const Path* handed_on(const Path* path) {
    switch (nodeTag(path)) {
        case T_SubqueryScanPath:
            return reinterpret_cast<const SubqueryScanPath*>(path)->subpath;
        case T_LimitPath:
            return reinterpret_cast<const LimitPath*>(path)->subpath;
        case T_ProjectionPath:
            return reinterpret_cast<const ProjectionPath*>(path)->subpath;
        default:
            return nullptr;
    }
}

/// Whether an index gives its rows in the order of a distance of texts.
bool is_in_order_of_texts(const IndexPath* path) {
    if (path->indexorderbys == NIL || !IsA(linitial(path->indexorderbys), OpExpr)) return false;
    const auto distance =
        distance_operator_of(static_cast<const OpExpr*>(linitial(path->indexorderbys))->opno);
    return distance && distance->trigrams;
}

/// Whether a path has its order from an index in the order of an operator, as an index for
/// approximate search gives it. That of pg_trgm is exact.
bool has_order_of_index(const Path* path) {
    while (const Path* const below = handed_on(path)) path = below;
    switch (nodeTag(path)) {
        case T_IndexPath: {
            const auto* const index = reinterpret_cast<const IndexPath*>(path);
            return index->indexorderbys != NIL && !is_in_order_of_texts(index);
        }
        case T_NestPath:
            return has_order_of_index(reinterpret_cast<const NestPath*>(path)->jpath.outerjoinpath);
        case T_GatherMergePath:
            return has_order_of_index(reinterpret_cast<const GatherMergePath*>(path)->subpath);
        case T_AppendPath:
        case T_MergeAppendPath: {
            const List* const parts =
                IsA(path, AppendPath) ? reinterpret_cast<const AppendPath*>(path)->subpaths
                                      : reinterpret_cast<const MergeAppendPath*>(path)->subpaths;
            ListCell* cell;
            foreach (cell, parts)
                if (has_order_of_index(static_cast<const Path*>(lfirst(cell)))) return true;
            return false;
        }
        default:
            return false;
    }
}

/// Whether the conditions may be looked at twice for a row.
bool may_be_repeated(List* clauses) {
    return !contain_volatile_functions(reinterpret_cast<Node*>(clauses));
}

bool may_be_subquery(PlannerInfo* root, const RelOptInfo* relation) {
    return plan_nearest() != PlanNearest::off && may_have_nodes() &&
           is_whole_subquery(root, relation) && only_reads(root);
}

/// A subquery that depends on no other relation.
bool may_be_nearest_scan(PlannerInfo* root, RelOptInfo* relation) {
    if (!may_be_subquery(root, relation) || !bms_is_empty(relation->lateral_relids) ||
        IS_DUMMY_REL(relation))
        return false;
    List* const clauses = extract_actual_clauses(relation->baserestrictinfo, false);
    return !has_pseudoconstant(relation->baserestrictinfo) && may_be_repeated(clauses) &&
           !uses_more_than_columns(reinterpret_cast<Node*>(relation->reltarget->exprs), relation) &&
           !uses_more_than_columns(reinterpret_cast<Node*>(clauses), relation);
}

bool may_be_nearest_join(PlannerInfo* root, const RelOptInfo* join, const RelOptInfo* outer,
                         const RelOptInfo* inner, JoinType type, const JoinPathExtraData* extra) {
    if (!may_be_subquery(root, inner) || (type != JOIN_INNER && type != JOIN_LEFT) ||
        bms_is_empty(inner->lateral_relids) ||
        !bms_is_subset(inner->lateral_relids, outer->relids) || !bms_is_empty(join->lateral_relids))
        return false;
    const Path* const path = outer->cheapest_total_path;
    if (path == nullptr || path->param_info != nullptr) return false;
    // Of an outer join only that on true: its other conditions see columns before they are nulled.
    if (type == JOIN_LEFT && (extra->restrictlist != NIL || inner->baserestrictinfo != NIL))
        return false;
    List* const clauses = extract_actual_clauses(
        list_concat_copy(inner->baserestrictinfo, extra->restrictlist), false);
    if (!gives_columns_alone(inner) ||
        uses_more_than_columns(reinterpret_cast<Node*>(clauses), inner))
        return false;
    return !has_pseudoconstant(extra->restrictlist) &&
           !has_pseudoconstant(inner->baserestrictinfo) && may_be_repeated(clauses);
}

// ---- Costs ----

/// Units of cost in a second: a sequential scan reads a page, of one unit, in about 10
/// microseconds.
constexpr double kUnitsPerSecond = 100000;
/// Measured on a core of an AMD EPYC, with 200,000 real[] of 384 elements: seconds for an item
/// whose distance is computed as it comes, and for each of its elements; and for an element of an
/// item that is kept to be searched later.
constexpr double kTakeSecondsPerItem = 1.5e-7;
constexpr double kTakeSecondsPerElement = 5e-10;
constexpr double kKeepSecondsPerElement = 8e-9;
/// Where the type does not tell.
constexpr std::size_t kUsualDimensions = 384;

std::size_t dimensions_of(const Expr* query) {
    const int32 modifier = exprTypmod(reinterpret_cast<const Node*>(query));
    return modifier > 0 ? static_cast<std::size_t>(modifier) : kUsualDimensions;
}

/// Rows that the subquery's own plan sorts for one outer row.
double sorted_rows(const Path* path) {
    while (const Path* const below = handed_on(path)) path = below;
    return path->rows;
}

/// The same of 50,000 to 200,000 texts of about 20 characters: seconds to make the trigrams of a
/// text, of which ASCII takes a fourth and others twice as much; to find items by one of their
/// trigrams; for the operator; and for an item of an index in its order, most of whose pages it
/// reads.
constexpr double kTrigramSecondsPerText = 1e-6;
constexpr double kSecondsPerItemTrigram = 9e-8;
constexpr double kOperatorSecondsPerText = 2.2e-6;
constexpr double kIndexSecondsPerText = 2e-7;
constexpr double kTrigramsPerText = 20;

double text_search_cost(const NearestShape& shape, double queries, double items, double matching) {
    if (is_found_while_reading(shape)) return items * kTrigramSecondsPerText * kUnitsPerSecond;
    const double texts = items + queries;
    const double search = nearest_strings_cpu_seconds(
        StringMetric::trigram, queries * (shape.keys == NIL ? items : matching),
        static_cast<std::uint64_t>(std::min(texts * kTrigramsPerText, 1e15)), cpu_threads());
    return (texts * kTrigramSecondsPerText + items * kTrigramsPerText * kSecondsPerItemTrigram +
            search) *
           kUnitsPerSecond;
}

/// How many times the planner's own plan of a subquery of texts costs what the planner says, which
/// takes the operator for one as cheap as an addition, and an index in its order for one of which
/// few pages are read.
double understatement(const Path& ordinary) {
    const Path* path = &ordinary;
    while (const Path* const below = handed_on(path)) path = below;
    double seconds = path->rows * kOperatorSecondsPerText;
    if (IsA(path, IndexPath) && is_in_order_of_texts(reinterpret_cast<const IndexPath*>(path)))
        seconds = path->rows * kIndexSecondsPerText;
    else if (IsA(path, GatherMergePath))
        seconds /= reinterpret_cast<const GatherMergePath*>(path)->num_workers + 1;
    return 1 + seconds * kUnitsPerSecond / std::max(ordinary.total_cost, 1.0);
}

/// `matching`: items that one query is compared with.
double search_cost(const PlannedShape& planned, double queries, double items, double matching) {
    const NearestShape& shape = *planned.shape;
    if (shape.distance.trigrams) return text_search_cost(shape, queries, items, matching);
    const std::size_t dimensions = dimensions_of(shape.query);
    constexpr double kMost = 1e9;
    const Vectors of_queries{shape.distance.type.element,
                             static_cast<std::size_t>(std::clamp(queries, 1.0, kMost)),
                             dimensions,
                             nullptr,
                             {},
                             {}};
    Vectors of_items = of_queries;
    of_items.rows = static_cast<std::size_t>(std::clamp(items, 1.0, kMost));
    if (is_found_while_reading(shape) && !planned.remembered)
        return items *
               (kTakeSecondsPerItem + kTakeSecondsPerElement * static_cast<double>(dimensions)) *
               kUnitsPerSecond;
    const double keeping =
        planned.remembered ? 0 : kKeepSecondsPerElement * items * static_cast<double>(dimensions);
    const double seconds =
        shape.keys == NIL
            ? knn_cpu_seconds(of_queries, of_items, cpu_threads())
            : keyed_knn_cpu_seconds(of_queries, of_items, queries * matching, cpu_threads());
    return (keeping + seconds) * kUnitsPerSecond;
}

int workers_of(const PlannedStmt& statement) {
    const Plan* const plan = statement.planTree;
    return IsA(plan, Gather) ? reinterpret_cast<const Gather*>(plan)->num_workers : 0;
}

/// Of the item query. Where workers bundle the few items of one query, these share the cost of the
/// plan that the planner would have, which is for reading.
Cost reading_cost(const PlannedShape& planned) {
    const Cost cost = planned.items->planTree->total_cost;
    if (planned.remembered) return 0;
    // Where distances are computed as items come, that is more than to hand an item on, unless few
    // of the rows that are read are items.
    if (planned.bundles == nullptr || !is_found_while_reading(*planned.shape) ||
        planned.items->planTree->plan_rows >= kFewestBundled)
        return cost;
    return parallel_setup_cost +
           cost * (workers_of(*planned.items) + 1) / (workers_of(*planned.bundles) + 1);
}

void set_costs(Path& path, const Path& outer, const Path& ordinary, const PlannedShape& planned) {
    const Plan& items = *planned.items->planTree;
    Cost own = reading_cost(planned) +
               search_cost(planned, outer.rows, items.plan_rows, sorted_rows(&ordinary));
    // In the unit of what it is compared with.
    if (planned.shape->distance.trigrams) own /= understatement(ordinary);
    path.startup_cost = outer.total_cost + own;
    path.total_cost = path.startup_cost + path.rows * (cpu_tuple_cost + cpu_operator_cost);
    if (plan_nearest() == PlanNearest::force) path.startup_cost = path.total_cost = 0;
}

// ---- From the path to the plan ----

/// CustomPath::custom_private: the planned shape, the outer rows, the clauses of the relation or
/// join, and whether it is an outer one.
struct PathData {
    PlannedShape* planned;
    Path* outer;
    List* clauses;
    Index inner;
    bool outer_join;
};

AttrNumber place_in_plan(const Plan* plan, const Var* column) {
    ListCell* cell;
    foreach (cell, plan->targetlist) {
        const auto* const entry = static_cast<const TargetEntry*>(lfirst(cell));
        const auto* const given = reinterpret_cast<const Var*>(entry->expr);
        if (IsA(given, Var) && given->varno == column->varno && given->varattno == column->varattno)
            return entry->resno;
    }
    elog(ERROR, "the plan of the outer rows does not give column %d of relation %d",
         column->varattno, static_cast<int>(column->varno));
    pg_unreachable();
}

/// NearestShape::outer, as places in the outer plan.
List* places_of(const NearestShape& shape, const Plan* plan) {
    List* places = NIL;
    ListCell* cell;
    foreach (cell, shape.outer)
        places = lappend_int(places, place_in_plan(plan, static_cast<const Var*>(lfirst(cell))));
    return places;
}

Node* place_outer_columns(Node* node, void* places) {
    if (node == nullptr) return nullptr;
    if (IsA(node, Var)) {
        Var* const var = static_cast<Var*>(copyObjectImpl(node));
        if (static_cast<int>(var->varno) == OUTER_VAR)
            var->varattno = static_cast<AttrNumber>(
                list_nth_int(static_cast<List*>(places), var->varattno - 1));
        return reinterpret_cast<Node*>(var);
    }
    return mutate_expression(node, place_outer_columns, places);
}

/// The rows that the node puts together: the outer plan's columns, and what the subquery shows. For
/// an outer join, as the plan above it sees them.
List* scan_columns(const Plan* outer, const PathData& data, const NearestShape& shape,
                   const RelOptInfo* join) {
    List* columns = NIL;
    ListCell* cell;
    foreach (cell, outer->targetlist) {
        const auto* const entry = static_cast<const TargetEntry*>(lfirst(cell));
        columns =
            lappend(columns, makeTargetEntry(static_cast<Expr*>(copyObjectImpl(entry->expr)),
                                             static_cast<AttrNumber>(list_length(columns) + 1),
                                             nullptr, false));
    }
    AttrNumber number = 0;
    List* const wanted =
        pull_var_clause(reinterpret_cast<Node*>(join->reltarget->exprs), PVC_RECURSE_PLACEHOLDERS);
    foreach (cell, shape.shown) {
        const auto* const shown = static_cast<const Node*>(lfirst(cell));
        Var* column = makeVar(static_cast<int>(data.inner), ++number, exprType(shown),
                              exprTypmod(shown), exprCollation(shown), 0);
        ListCell* other;
        foreach (other, wanted) {
            auto* const var = static_cast<Var*>(lfirst(other));
            if (var->varno == column->varno && var->varattno == column->varattno)
                column = static_cast<Var*>(copyObjectImpl(var));
        }
        columns =
            lappend(columns, makeTargetEntry(reinterpret_cast<Expr*>(column),
                                             static_cast<AttrNumber>(list_length(columns) + 1),
                                             nullptr, false));
    }
    return columns;
}

/// Of each column of the subquery, its place in the rows of a plan of it; 0 for none.
List* places_of_shown(const NearestShape& shape, Index subquery, const Plan* plan) {
    List* places = NIL;
    for (int column = 1; column <= list_length(shape.shown); ++column) {
        int place = 0;
        ListCell* cell;
        foreach (cell, plan->targetlist) {
            const auto* const entry = static_cast<const TargetEntry*>(lfirst(cell));
            const auto* const given = reinterpret_cast<const Var*>(entry->expr);
            if (IsA(given, Var) && static_cast<Index>(given->varno) == subquery &&
                given->varattno == column)
                place = entry->resno;
        }
        places = lappend_int(places, place);
    }
    return places;
}

NearestPlan plan_of(const PathData& data, const NestLoop* loop) {
    const PlannedShape& planned = *data.planned;
    const NearestShape& shape = *planned.shape;
    List* const places = places_of(shape, outerPlan(loop));
    NearestPlan plan{};
    plan.items = planned.items;
    plan.bundles = planned.bundles;
    plan.shown =
        reinterpret_cast<List*>(place_outer_columns(reinterpret_cast<Node*>(shape.shown), places));
    plan.query =
        reinterpret_cast<Expr*>(place_outer_columns(reinterpret_cast<Node*>(shape.query), places));
    plan.keys =
        reinterpret_cast<List*>(place_outer_columns(reinterpret_cast<Node*>(shape.keys), places));
    plan.ordinary = places_of_shown(shape, data.inner, innerPlan(loop));
    plan.limit = shape.limit;
    plan.offset = shape.offset;
    plan.distance = shape.distance;
    plan.item_is_left = shape.item_is_left;
    plan.columns = shape.columns;
    plan.outer_join = data.outer_join;
    plan.one_query = shape.outer == NIL;
    plan.parallel_safe = planned.parallel_safe;
    plan.table = planned.table;
    return plan;
}

const CustomScanMethods kScanMethods = {kNearestName, new_nearest_scan};

/// Leaves the outer plan with the columns of its path, and what the loop hands on: a scan below a
/// loop may give all that its table has.
void narrow_outer(NestLoop* loop, const Path* path) {
    List* columns = make_tlist_from_pathtarget(path->pathtarget);
    ListCell* cell;
    foreach (cell, loop->nestParams)
        columns = add_to_flat_tlist(
            columns, list_make1(static_cast<const NestLoopParam*>(lfirst(cell))->paramval));
    outerPlan(loop) =
        change_plan_targetlist(outerPlan(loop), columns, outerPlan(loop)->parallel_safe);
}

/// The loop that the node takes both of its sides from: of a join the planner has made it.
NestLoop* loop_of(List* children, const Path* outer) {
    if (list_length(children) == 1) {
        auto* const loop = static_cast<NestLoop*>(linitial(children));
        narrow_outer(loop, outer);
        return loop;
    }
    NestLoop* const loop = makeNode(NestLoop);
    outerPlan(loop) = static_cast<Plan*>(linitial(children));
    innerPlan(loop) = static_cast<Plan*>(lsecond(children));
    return loop;
}

Plan* plan_nearest_path(PlannerInfo*, RelOptInfo* join, CustomPath* path, List* columns, List*,
                        List* children) {
    const PathData& data = *static_cast<const PathData*>(linitial(path->custom_private));
    NestLoop* const loop = loop_of(children, data.outer);
    CustomScan* const scan = makeNode(CustomScan);
    scan->scan.plan.targetlist = columns;
    scan->scan.plan.qual = extract_actual_clauses(data.clauses, false);
    scan->scan.scanrelid = 0;
    scan->flags = path->flags;
    scan->custom_plans = list_make1(loop);
    scan->custom_scan_tlist = scan_columns(outerPlan(loop), data, *data.planned->shape, join);
    scan->custom_private = write_nearest_plan(plan_of(data, loop));
    scan->methods = &kScanMethods;
    note_statement(data.planned->items);
    return &scan->scan.plan;
}

const CustomPathMethods kPathMethods = {kNearestName, plan_nearest_path, nullptr};

/// Adds the path that gives the rows of the relation, if the subquery has the shape. `ordinary` is
/// the planner's own for the subquery, and `children` are what loop_of() is made from.
void add_nearest_path(RelOptInfo* relation, const Path* ordinary, List* children,
                      const PathData& data) {
    auto* const kept = static_cast<PathData*>(palloc0(sizeof(PathData)));
    *kept = data;
    CustomPath* const path = makeNode(CustomPath);
    path->path.pathtype = T_CustomScan;
    path->path.parent = relation;
    path->path.pathtarget = relation->reltarget;
    path->path.rows = relation->rows;
    set_no_disabled_nodes(&path->path);
    set_costs(path->path, *data.outer, *ordinary, *data.planned);
    path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
    path->custom_paths = children;
    path->custom_private = list_make1(kept);
    path->methods = &kPathMethods;
    add_path(relation, &path->path);
}

/// Whether the node may answer for the planner's own path of the subquery.
bool may_replace(const SubqueryScanPath* ordinary) {
    return ordinary != nullptr &&
           (plan_nearest() == PlanNearest::force || !has_order_of_index(&ordinary->path));
}

void add_join_path(PlannerInfo* root, RelOptInfo* join, RelOptInfo* outer, RelOptInfo* inner,
                   JoinType type, JoinPathExtraData* extra) {
    if (!may_be_nearest_join(root, join, outer, inner, type, extra)) return;
    const SubqueryScanPath* const subquery = ordinary_path(inner, outer->relids);
    if (!may_replace(subquery)) return;
    auto* const ordinary = const_cast<Path*>(&subquery->path);
    Path* const rows = outer->cheapest_total_path;
    PlannedShape* const planned = planned_shape(root, inner);
    if (planned->shape == nullptr || !gives_columns(rows, planned->shape->outer)) return;
    JoinCostWorkspace costs;
    cost_nested_loop(root, &costs, type, rows, ordinary, extra);
    NestPath* const loop =
        create_nestloop_path(root, join, type, &costs, extra, rows, ordinary, NIL, NIL, nullptr);
    add_nearest_path(join, ordinary, list_make1(loop),
                     {planned, rows, list_concat_copy(inner->baserestrictinfo, extra->restrictlist),
                      inner->relid, type == JOIN_LEFT});
}

/// Of a subquery that depends on no other relation: the outer side is one row without columns.
void add_scan_path(PlannerInfo* root, RelOptInfo* relation, Index number, RangeTblEntry*) {
    if (!may_be_nearest_scan(root, relation)) return;
    const SubqueryScanPath* const subquery = ordinary_path(relation, nullptr);
    if (!may_replace(subquery)) return;
    PlannedShape* const planned = planned_shape(root, relation);
    if (planned->shape == nullptr || planned->shape->outer != NIL) return;
    // A path that costs more than another of its relation is freed.
    SubqueryScanPath* const ordinary = makeNode(SubqueryScanPath);
    *ordinary = *subquery;
    Path* const one_row =
        &create_group_result_path(root, relation, create_empty_pathtarget(), NIL)->path;
    add_nearest_path(relation, &ordinary->path, list_make2(one_row, ordinary),
                     {planned, one_row, relation->baserestrictinfo, number, false});
}

}  // namespace

void offer_nearest_paths() {
    RegisterCustomScanMethods(&kScanMethods);
    install_join_paths(add_join_path);
    install_scan_paths(add_scan_path);
}

}  // namespace gputext
