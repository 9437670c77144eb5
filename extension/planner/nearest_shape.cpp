#include "extension/planner/nearest_shape.hpp"

extern "C" {
#include "access/stratnum.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/pg_opfamily_d.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"
#include "parser/parse_coerce.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"
}

#include <optional>

#include "extension/base/server_versions.hpp"

namespace gputext {
namespace {

// ---- What a query depends on ----

/// What is found of an expression or query, seen from a query's own level.
struct Dependence {
    int depth = 0;       // of the queries between
    bool own = false;    // on columns of the query's own relations
    bool outer = false;  // on columns of the relations one level above
    bool unfit = false;  // on what has no values of its own here, such as a CTE from outside
    bool subqueries = false;
};

bool look_at(Node* node, void* context);

void look_at_level(Dependence& found, Index level) {
    const int above = static_cast<int>(level) - found.depth;
    if (above == 0) found.own = true;
    if (above == 1) found.outer = true;
    if (above > 1) found.unfit = true;
}

void look_at_query(Query* query, Dependence& found) {
    found.subqueries = true;
    ++found.depth;
    if (query->rowMarks != NIL || query->commandType != CMD_SELECT) found.unfit = true;
    ListCell* cell;
    foreach (cell, query->rtable) {
        const auto* const from = static_cast<const RangeTblEntry*>(lfirst(cell));
        // A sample is another one each time that it is read.
        if ((from->rtekind == RTE_CTE && static_cast<int>(from->ctelevelsup) > found.depth) ||
            from->rtekind == RTE_NAMEDTUPLESTORE || from->tablesample != nullptr)
            found.unfit = true;
    }
    walk_query(query, look_at, &found);
    --found.depth;
}

bool look_at(Node* node, void* context) {
    auto& found = *static_cast<Dependence*>(context);
    if (node == nullptr) return false;
    switch (nodeTag(node)) {
        case T_Query:
            look_at_query(reinterpret_cast<Query*>(node), found);
            return false;
        case T_Var:
            look_at_level(found, reinterpret_cast<Var*>(node)->varlevelsup);
            return false;
        case T_Param: {
            const ParamKind kind = reinterpret_cast<const Param*>(node)->paramkind;
            if (kind != PARAM_EXTERN && kind != PARAM_SUBLINK) found.unfit = true;
            return false;
        }
        case T_PlaceHolderVar:
        case T_SubPlan:
        case T_AlternativeSubPlan:
        case T_CurrentOfExpr:
            found.unfit = true;
            return false;
        case T_SubLink:
            found.subqueries = true;
            break;
        default:
            break;
    }
    return walk_expression(node, look_at, context);
}

Dependence dependence_of(const void* expression) {
    Dependence found;
    look_at(const_cast<Node*>(static_cast<const Node*>(expression)), &found);
    return found;
}

/// Of a query's own level: Vars of level 0 are its own.
Dependence dependence_of_query(Query* query) {
    Dependence found;
    found.depth = -1;
    look_at_query(query, found);
    return found;
}

// ---- The parts of the subquery ----

bool has_plain_form(const Query* query) {
    return query->commandType == CMD_SELECT && query->utilityStmt == nullptr && !query->hasAggs &&
           !query->hasWindowFuncs && !query->hasTargetSRFs && !query->hasRecursive &&
           !query->hasModifyingCTE && !query->hasForUpdate && query->cteList == NIL &&
           query->groupClause == NIL && query->groupingSets == NIL &&
           query->havingQual == nullptr && query->windowClause == NIL &&
           query->distinctClause == NIL && query->rowMarks == NIL &&
           query->setOperations == nullptr && query->limitCount != nullptr &&
           query->limitOption == LIMIT_OPTION_COUNT && list_length(query->sortClause) == 1;
}

/// The distance that the subquery is sorted by; null for any other order.
OpExpr* distance_sorted_by(const Query* query) {
    const auto* const sort = static_cast<const SortGroupClause*>(linitial(query->sortClause));
    if (sort->nulls_first) return nullptr;
    TargetEntry* const entry =
        get_sortgroupclause_tle(const_cast<SortGroupClause*>(sort), query->targetList);
    if (!IsA(entry->expr, OpExpr)) return nullptr;
    auto* const operation = reinterpret_cast<OpExpr*>(entry->expr);
    const Oid type = operation->opresulttype;
    if (type != FLOAT4OID && type != FLOAT8OID) return nullptr;
    const Oid less = lookup_type_cache(type, TYPECACHE_LT_OPR)->lt_opr;
    return sort->sortop == less ? operation : nullptr;
}

/// Whether it may be computed once for all rows, before any is read.
bool is_row_independent(const Node* expression) {
    if (expression == nullptr) return true;
    const Dependence found = dependence_of(expression);
    return !found.own && !found.outer && !found.unfit && !found.subqueries;
}

bool is_of_items(const Dependence& found) {
    return found.own && !found.outer && !found.unfit && !found.subqueries;
}

/// Whether the node can compute it for an outer row.
bool is_of_query(const Dependence& found) {
    return !found.own && !found.unfit && !found.subqueries;
}

bool is_of_outer(const Dependence& found) {
    return found.outer && is_of_query(found);
}

// ---- Expressions of the node ----

/// Rewrites expressions of the subquery as NearestShape::shown says.
struct Translation {
    const OpExpr* distance;
    List* item_columns = NIL;  // expressions of the subquery
    List* outer = NIL;         // Vars of the outer query
    bool failed = false;
};

/// Its place in the list from 1, where it is appended if it is not there.
AttrNumber place_in(List** list, Node* node) {
    int place = 0;
    ListCell* cell;
    foreach (cell, *list) {
        ++place;
        if (equal(lfirst(cell), node)) return static_cast<AttrNumber>(place);
    }
    *list = lappend(*list, copyObjectImpl(node));
    return static_cast<AttrNumber>(place + 1);
}

Node* variable_of(int side, AttrNumber place, const Node* like) {
    return reinterpret_cast<Node*>(
        makeVar(side, place, exprType(like), exprTypmod(like), exprCollation(like), 0));
}

/// The place that the distance gets when all columns are known.
constexpr AttrNumber kDistance = MaxAttrNumber;

Node* translate(Node* node, void* context) {
    auto& translation = *static_cast<Translation*>(context);
    if (node == nullptr) return nullptr;
    if (equal(node, translation.distance)) return variable_of(INNER_VAR, kDistance, node);
    if (IsA(node, Var)) {
        auto* const var = reinterpret_cast<Var*>(node);
        if (var->varlevelsup == 0)
            return variable_of(INNER_VAR, place_in(&translation.item_columns, node), node);
        // A whole row of an outer relation is no column that the outer plan gives by itself.
        if (var->varattno <= 0) translation.failed = true;
        Var* const above = static_cast<Var*>(copyObjectImpl(var));
        above->varlevelsup = 0;
        return variable_of(OUTER_VAR, place_in(&translation.outer, reinterpret_cast<Node*>(above)),
                           node);
    }
    return mutate_expression(node, translate, context);
}

Node* number_distance(Node* node, void* context) {
    if (node == nullptr) return nullptr;
    if (IsA(node, Var)) {
        Var* const var = static_cast<Var*>(copyObjectImpl(node));
        if (static_cast<int>(var->varno) == INNER_VAR && var->varattno == kDistance)
            var->varattno = *static_cast<AttrNumber*>(context);
        return reinterpret_cast<Node*>(var);
    }
    return mutate_expression(node, number_distance, context);
}

/// Ready to be executed. The planner's state of no query is of use for it: its Vars are numbered by
/// the node or by the subquery, and the planner would look up other columns by them.
Node* executable(Node* expression) {
    if (expression == nullptr) return nullptr;
    return reinterpret_cast<Node*>(expression_planner(reinterpret_cast<Expr*>(expression)));
}

/// The columns that the query around uses of the relation, as planner's pull_varattnos() says.
Bitmapset* used_columns(const RelOptInfo* relation) {
    Bitmapset* used = nullptr;
    pull_varattnos(reinterpret_cast<Node*>(relation->reltarget->exprs), relation->relid, &used);
    ListCell* cell;
    foreach (cell, relation->baserestrictinfo)
        pull_varattnos(reinterpret_cast<Node*>(lfirst_node(RestrictInfo, cell)->clause),
                       relation->relid, &used);
    return used;
}

Cost cost_of(PlannerInfo* root, Expr* expression) {
    QualCost cost;
    cost_qual_eval_node(&cost, reinterpret_cast<Node*>(expression), root);
    return cost.per_tuple;
}

/// Whether a view in the subquery computes what is shown, or a part of it, and the planner would
/// compute it behind the sort, for the rows that LIMIT leaves alone. To the item query it is a
/// column, which it computes for all of its rows.
bool is_expensive_column_of_view(PlannerInfo* subroot, const TargetEntry* shown) {
    const auto* const planned =
        static_cast<const TargetEntry*>(list_nth(subroot->processed_tlist, shown->resno - 1));
    const Cost cost = cost_of(subroot, planned->expr);
    return cost > 10 * cpu_operator_cost && cost > cost_of(nullptr, shown->expr);
}

/// What the subquery shows, in the order of its columns; whether that can be. A column that nobody
/// uses is null, as the planner makes it.
bool translate_columns(const RelOptInfo* relation, const Query* subquery, Translation& translation,
                       NearestShape& shape) {
    const Bitmapset* const used = used_columns(relation);
    ListCell* cell;
    foreach (cell, subquery->targetList) {
        auto* const entry = static_cast<TargetEntry*>(lfirst(cell));
        if (entry->resjunk) continue;
        auto* shown = reinterpret_cast<Node*>(entry->expr);
        if (!bms_is_member(entry->resno - FirstLowInvalidHeapAttributeNumber, used)) {
            shown = reinterpret_cast<Node*>(
                makeNullConst(exprType(shown), exprTypmod(shown), exprCollation(shown)));
        } else {
            const Dependence found = dependence_of(shown);
            if (found.unfit || found.subqueries ||
                is_expensive_column_of_view(relation->subroot, entry))
                return false;
        }
        shape.shown = lappend(shape.shown, translate(shown, &translation));
    }
    shape.columns = list_length(translation.item_columns);
    auto distance = static_cast<AttrNumber>(shape.columns + 1);
    foreach (cell, shape.shown)
        lfirst(cell) = executable(number_distance(static_cast<Node*>(lfirst(cell)), &distance));
    return !translation.failed && shape.columns < MaxHeapAttributeNumber / 2;
}

// ---- Keys ----

/// The equality of an item's expression and an outer one, both of one type.
struct Key {
    Node* item;
    Node* outer;
};

/// What of the subquery's conditions are keys, and what are others.
struct Conditions {
    List* item_keys = NIL;
    List* outer_keys = NIL;
    List* others = NIL;
};

bool is_integer(Oid type) {
    return type == INT2OID || type == INT4OID || type == INT8OID;
}

Node* as_bigint(Node* integer) {
    return coerce_to_target_type(nullptr, integer, exprType(integer), INT8OID, -1,
                                 COERCION_EXPLICIT, COERCE_EXPLICIT_CAST, -1);
}

/// Whether the operator says of keys of the type what KeyNumbers says of them.
bool is_equality_of(const OpExpr* operation, Oid type) {
    const TypeCacheEntry* const entry =
        lookup_type_cache(getBaseType(type), TYPECACHE_EQ_OPR | TYPECACHE_HASH_PROC);
    return type != RECORDOID && entry->eq_opr == operation->opno && OidIsValid(entry->hash_proc) &&
           (!OidIsValid(operation->inputcollid) ||
            get_collation_isdeterministic(operation->inputcollid));
}

std::optional<Key> key_of(Node* condition) {
    if (!IsA(condition, OpExpr)) return std::nullopt;
    const auto* const operation = reinterpret_cast<const OpExpr*>(condition);
    if (list_length(operation->args) != 2) return std::nullopt;
    auto* const left = static_cast<Node*>(linitial(operation->args));
    auto* const right = static_cast<Node*>(lsecond(operation->args));
    const Dependence of_left = dependence_of(left), of_right = dependence_of(right);
    const bool item_is_left = is_of_items(of_left) && is_of_outer(of_right);
    if (!item_is_left && !(is_of_outer(of_left) && is_of_items(of_right))) return std::nullopt;
    const Key key{item_is_left ? left : right, item_is_left ? right : left};
    const Oid type = exprType(left);
    if (type == exprType(right))
        return is_equality_of(operation, type) ? std::optional(key) : std::nullopt;
    if (is_integer(type) && is_integer(exprType(right)) &&
        get_op_opfamily_strategy(operation->opno, INTEGER_BTREE_FAM_OID) == BTEqualStrategyNumber)
        return Key{as_bigint(key.item), as_bigint(key.outer)};
    return std::nullopt;
}

void divide_conditions(Node* condition, Conditions& divided) {
    if (condition == nullptr) return;
    if (is_andclause(condition)) {
        ListCell* cell;
        foreach (cell, reinterpret_cast<BoolExpr*>(condition)->args)
            divide_conditions(static_cast<Node*>(lfirst(cell)), divided);
        return;
    }
    if (const std::optional<Key> key = key_of(condition)) {
        divided.item_keys = lappend(divided.item_keys, key->item);
        divided.outer_keys = lappend(divided.outer_keys, key->outer);
    } else {
        divided.others = lappend(divided.others, condition);
    }
}

/// Whether the node can compute the outer keys.
bool translate_keys(const Conditions& conditions, Translation& translation, NearestShape& shape) {
    ListCell* cell;
    foreach (cell, conditions.outer_keys)
        shape.keys = lappend(shape.keys,
                             executable(translate(static_cast<Node*>(lfirst(cell)), &translation)));
    return !translation.failed;
}

// ---- What raises no errors ----

/// Whether it compares values of a type of PostgreSQL's own that it can sort. Not all of these
/// operators are marked as LEAKPROOF, such as those of numeric.
bool is_comparison(Oid oper) {
    Oid left, right;
    op_input_types(oper, &left, &right);
    return oper < FirstUnpinnedObjectId &&
           (left == ANYENUMOID || get_typtype(left) == TYPTYPE_BASE) && is_ordering_operator(oper);
}

bool is_not_leakproof(Oid function, void*) {
    return !get_func_leakproof(function);
}

/// Whether the node calls a function that may raise an error for some rows and not for others. A
/// function that is LEAKPROOF does not.
bool calls_what_may_fail(Node* node) {
    if (IsA(node, OpExpr) && is_comparison(reinterpret_cast<OpExpr*>(node)->opno)) return false;
    return check_functions_in_node(node, is_not_leakproof, nullptr) && !is_row_independent(node);
}

/// Whether a column of a table may stand for an expression.
bool reads_computed_columns(const Query* query) {
    ListCell* cell;
    foreach (cell, query->rtable) {
        const auto* const from = static_cast<const RangeTblEntry*>(lfirst(cell));
        if (from->rtekind == RTE_RELATION && computes_columns(from->relid)) return true;
    }
    return false;
}

/// Whether some expression in a query, or in a part of it, may raise an error for some rows. True
/// for all that is not known to raise none.
bool may_fail(Node* node, void* context) {
    if (node == nullptr) return false;
    switch (nodeTag(node)) {
        case T_Query:
            return reads_computed_columns(reinterpret_cast<Query*>(node)) ||
                   walk_query(reinterpret_cast<Query*>(node), may_fail, context);
        case T_FuncExpr:
        case T_OpExpr:
        case T_DistinctExpr:
        case T_ScalarArrayOpExpr:
            if (calls_what_may_fail(node)) return true;
            break;
        case T_SubLink:
            // More rows than one are an error of the others.
            if (reinterpret_cast<const SubLink*>(node)->subLinkType != EXISTS_SUBLINK &&
                reinterpret_cast<const SubLink*>(node)->subLinkType != ANY_SUBLINK)
                return true;
            break;
        case T_ArrayExpr:
            // Arrays of arrays have to have the same lengths.
            if (reinterpret_cast<const ArrayExpr*>(node)->multidims) return true;
            break;
        case T_List:
        case T_TargetEntry:
        case T_FromExpr:
        case T_JoinExpr:
        case T_RangeTblRef:
        case T_SetOperationStmt:
        case T_Var:
        case T_Const:
        case T_Param:
        case T_RelabelType:
        case T_CollateExpr:
        case T_BoolExpr:
        case T_NullTest:
        case T_BooleanTest:
        case T_CoalesceExpr:
        case T_CaseExpr:
        case T_CaseWhen:
            break;
        default:
            return true;
    }
    return walk_expression(node, may_fail, context);
}

// ---- The queries ----

Query* copy_of(const Query* query) {
    Query* const copy = static_cast<Query*>(copyObjectImpl(query));
    // Modules that count statements leave it out.
    copy->queryId = 0;
    return copy;
}

void append_column(Query* query, Node* expression) {
    const auto number = static_cast<AttrNumber>(list_length(query->targetList) + 1);
    query->targetList =
        lappend(query->targetList, makeTargetEntry(static_cast<Expr*>(copyObjectImpl(expression)),
                                                   number, psprintf("column%d", number), false));
}

Query* item_query(const Query* subquery, const Translation& translation, Node* vector,
                  const Conditions& conditions) {
    Query* const items = copy_of(subquery);
    if (conditions.item_keys != NIL)
        items->jointree->quals = conditions.others == NIL
                                     ? nullptr
                                     : reinterpret_cast<Node*>(make_ands_explicit(
                                           static_cast<List*>(copyObjectImpl(conditions.others))));
    items->sortClause = NIL;
    items->limitCount = items->limitOffset = nullptr;
    items->targetList = NIL;
    ListCell* cell;
    foreach (cell, translation.item_columns) append_column(items, static_cast<Node*>(lfirst(cell)));
    append_column(items, vector);
    return items;
}

/// Whether the subquery reads one table by one condition: it computes that for each row.
bool is_only_condition(const Query* items, const Conditions& conditions) {
    return list_length(conditions.item_keys) == 1 && conditions.others == NIL &&
           list_length(items->rtable) == 1 &&
           static_cast<const RangeTblEntry*>(linitial(items->rtable))->rtekind == RTE_RELATION;
}

/// A condition that is a key leaves no row out of the item query, whose expressions are computed
/// for all of its rows: false where that may raise an error that the condition has kept away.
bool append_keys(Query* items, const Conditions& conditions) {
    List* const keys = conditions.item_keys;
    if (keys == NIL) return true;
    if (may_fail(reinterpret_cast<Node*>(items), nullptr) ||
        (may_fail(reinterpret_cast<Node*>(keys), nullptr) && !is_only_condition(items, conditions)))
        return false;
    ListCell* cell;
    foreach (cell, keys) append_column(items, static_cast<Node*>(lfirst(cell)));
    return true;
}

/// Which operand is the item's, and which the query's; whether they are.
bool set_operands(const OpExpr* distance, Translation& translation, NearestShape& shape,
                  Node** item) {
    auto* const left = static_cast<Node*>(linitial(distance->args));
    auto* const right = static_cast<Node*>(lsecond(distance->args));
    const Dependence of_left = dependence_of(left), of_right = dependence_of(right);
    shape.item_is_left = is_of_items(of_left);
    if (!(shape.item_is_left ? is_of_query(of_right)
                             : is_of_query(of_left) && is_of_items(of_right)))
        return false;
    *item = shape.item_is_left ? left : right;
    Node* const query = translate(shape.item_is_left ? right : left, &translation);
    shape.query = reinterpret_cast<Expr*>(executable(query));
    return !translation.failed;
}

/// None for an operator that is no distance of vectors.
std::optional<DistanceOperator> distance_of(const OpExpr* operation) {
    if (operation == nullptr || list_length(operation->args) != 2) return std::nullopt;
    return distance_operator_of(operation->opno);
}

}  // namespace

bool is_sorted_by_distance(const Query* query) {
    return has_plain_form(query) && distance_of(distance_sorted_by(query)).has_value();
}

NearestShape* nearest_shape_of(const RangeTblEntry* from, const RelOptInfo* relation) {
    Query* const subquery = from->subquery;
    if (from->rtekind != RTE_SUBQUERY || from->securityQuals != NIL ||
        from->tablesample != nullptr || !has_plain_form(subquery))
        return nullptr;
    const OpExpr* const sorted_by = distance_sorted_by(subquery);
    const std::optional<DistanceOperator> distance = distance_of(sorted_by);
    if (!distance || !is_row_independent(subquery->limitCount) ||
        !is_row_independent(subquery->limitOffset) ||
        contain_volatile_functions(reinterpret_cast<Node*>(subquery)))
        return nullptr;

    auto* const shape = static_cast<NearestShape*>(palloc0(sizeof(NearestShape)));
    shape->distance = *distance;
    Translation translation{sorted_by};
    Node* vector = nullptr;
    if (!set_operands(sorted_by, translation, *shape, &vector) ||
        !translate_columns(relation, subquery, translation, *shape))
        return nullptr;
    Conditions conditions;
    divide_conditions(subquery->jointree->quals, conditions);
    if (!translate_keys(conditions, translation, *shape)) return nullptr;
    shape->items = item_query(subquery, translation, vector, conditions);
    if (!append_keys(shape->items, conditions)) return nullptr;
    const Dependence of_items = dependence_of_query(shape->items);
    if (of_items.outer || of_items.unfit || dependence_of_query(subquery).unfit) return nullptr;
    shape->limit = executable(static_cast<Node*>(copyObjectImpl(subquery->limitCount)));
    shape->offset = executable(static_cast<Node*>(copyObjectImpl(subquery->limitOffset)));
    shape->outer = translation.outer;
    return shape;
}

}  // namespace gputext
