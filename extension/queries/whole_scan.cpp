#include "extension/queries/whole_scan.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type_d.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

#include "extension/base/server_versions.hpp"

namespace gputext {
namespace {

/// The number of a table in conditions of a WholeScan.
constexpr int kTable = 1;

// ---- Conditions ----

/// Whether the type is one of PostgreSQL's own, whose operators nobody can replace, or an enum. A
/// path in JSON may have names of months, which depend on lc_time, although its operators are
/// marked as immutable.
bool is_own_type(Oid type) {
    const Oid base = getBaseType(type);
    if (base == JSONPATHOID) return false;
    const char kind = get_typtype(base);
    return kind == TYPTYPE_ENUM ||
           (base < FirstNormalObjectId && (kind == TYPTYPE_BASE || kind == TYPTYPE_RANGE));
}

bool is_own_immutable_function(Oid function) {
    const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple)) return false;
    const auto* const form = reinterpret_cast<const FormData_pg_proc*>(GETSTRUCT(tuple));
    const bool own = function < FirstNormalObjectId && form->prolang == INTERNALlanguageId &&
                     form->provolatile == PROVOLATILE_IMMUTABLE && !form->proretset;
    ReleaseSysCache(tuple);
    return own;
}

bool depends_on_row_alone(Node* node, Index table);

bool all_depend_on_row_alone(List* nodes, Index table) {
    ListCell* cell;
    foreach (cell, nodes)
        if (!depends_on_row_alone(static_cast<Node*>(lfirst(cell)), table)) return false;
    return true;
}

/// What is not listed here may depend on more.
bool depends_on_row_alone(Node* node, Index table) {
    check_stack_depth();
    switch (nodeTag(node)) {
        case T_Var: {
            const auto* const column = reinterpret_cast<const Var*>(node);
            return static_cast<Index>(column->varno) == table && column->varlevelsup == 0 &&
                   column->varattno > 0 && is_own_type(column->vartype);
        }
        case T_Const:
            return is_own_type(reinterpret_cast<const Const*>(node)->consttype);
        case T_OpExpr:
        case T_DistinctExpr:
        case T_NullIfExpr: {
            const auto* const operation = reinterpret_cast<const OpExpr*>(node);
            return is_own_immutable_function(get_opcode(operation->opno)) &&
                   all_depend_on_row_alone(operation->args, table);
        }
        case T_ScalarArrayOpExpr: {
            const auto* const operation = reinterpret_cast<const ScalarArrayOpExpr*>(node);
            return is_own_immutable_function(get_opcode(operation->opno)) &&
                   all_depend_on_row_alone(operation->args, table);
        }
        case T_FuncExpr: {
            const auto* const call = reinterpret_cast<const FuncExpr*>(node);
            const bool cast = call->funcformat == COERCE_EXPLICIT_CAST ||
                              call->funcformat == COERCE_IMPLICIT_CAST;
            return cast && is_own_type(call->funcresulttype) &&
                   is_own_immutable_function(call->funcid) &&
                   all_depend_on_row_alone(call->args, table);
        }
        case T_RelabelType: {
            const auto* const label = reinterpret_cast<const RelabelType*>(node);
            return is_own_type(label->resulttype) &&
                   depends_on_row_alone(reinterpret_cast<Node*>(label->arg), table);
        }
        case T_BoolExpr:
            return all_depend_on_row_alone(reinterpret_cast<const BoolExpr*>(node)->args, table);
        case T_CoalesceExpr:
            return all_depend_on_row_alone(reinterpret_cast<const CoalesceExpr*>(node)->args,
                                           table);
        case T_NullTest: {
            const auto* const test = reinterpret_cast<const NullTest*>(node);
            return !test->argisrow &&
                   depends_on_row_alone(reinterpret_cast<Node*>(test->arg), table);
        }
        case T_BooleanTest:
            return depends_on_row_alone(
                reinterpret_cast<Node*>(reinterpret_cast<const BooleanTest*>(node)->arg), table);
        default:
            return false;
    }
}

/// Puts the values of parameters that are known in their place.
Node* put_values(Node* node, void* context) {
    if (node == nullptr) return nullptr;
    const auto parameters = static_cast<ParamListInfo>(context);
    if (!IsA(node, Param)) return mutate_expression(node, put_values, context);
    const auto* const parameter = reinterpret_cast<const Param*>(node);
    if (parameter->paramkind == PARAM_EXTERN && parameters != nullptr && parameter->paramid > 0 &&
        parameter->paramid <= parameters->numParams) {
        ParamExternData computed;
        const ParamExternData* const value =
            parameters->paramFetch != nullptr
                ? parameters->paramFetch(parameters, parameter->paramid, true, &computed)
                : &parameters->params[parameter->paramid - 1];
        if (value->ptype == parameter->paramtype) {
            int16 length;
            bool by_value;
            get_typlenbyval(parameter->paramtype, &length, &by_value);
            return reinterpret_cast<Node*>(makeConst(
                parameter->paramtype, parameter->paramtypmod, parameter->paramcollid, length,
                value->isnull ? Datum{0} : datumCopy(value->value, by_value, length), value->isnull,
                by_value));
        }
    }
    return static_cast<Node*>(copyObjectImpl(node));
}

// ---- Plans ----

/// The column of the node with that number, from 1, which is a plain one of what is below it; null
/// for any other.
const Var* plain_column(const Plan* plan, AttrNumber number) {
    if (number < 1 || number > list_length(plan->targetlist)) return nullptr;
    const auto* const entry =
        static_cast<const TargetEntry*>(list_nth(plan->targetlist, number - 1));
    if (entry->resno != number || entry->resjunk || !IsA(entry->expr, Var)) return nullptr;
    return reinterpret_cast<const Var*>(entry->expr);
}

/// The node that scans the only table of a query, where the rows of the query are those that it
/// gives; null for any other query.
const SeqScan* only_scan(const PlannedStmt* statement) {
    if (statement->commandType != CMD_SELECT || statement->hasModifyingCTE ||
        statement->utilityStmt != nullptr || statement->subplans != NIL ||
        statement->rowMarks != NIL)
        return nullptr;
    const Plan* const top = statement->planTree;
    const bool gathered = IsA(top, Gather);
    const Plan* const scan = gathered ? outerPlan(top) : top;
    if (scan == nullptr || !IsA(scan, SeqScan) || top->initPlan != NIL || scan->initPlan != NIL ||
        (gathered && top->qual != NIL))
        return nullptr;
    return reinterpret_cast<const SeqScan*>(scan);
}

const Scan* as_scan(const SeqScan* scan) {
#if PG_VERSION_NUM >= 150000
    return &scan->scan;
#else
    return scan;
#endif
}

/// The column with that number of `top`, which is the scan or what gathers its rows; null for one
/// that is no plain column of the table.
const Var* var_of_table(const Plan* top, const Scan* scan, AttrNumber number) {
    const Var* column = plain_column(top, number);
    if (column != nullptr && top != &scan->plan)
        column = static_cast<int>(column->varno) == OUTER_VAR
                     ? plain_column(&scan->plan, column->varattno)
                     : nullptr;
    if (column == nullptr || static_cast<Index>(column->varno) != scan->scanrelid ||
        column->varlevelsup != 0 || column->varattno <= 0)
        return nullptr;
    return column;
}

/// Its number in the table; InvalidAttrNumber for any other.
AttrNumber column_of_table(const Plan* top, const Scan* scan, AttrNumber number) {
    const Var* const column = var_of_table(top, scan, number);
    return column == nullptr ? InvalidAttrNumber : column->varattno;
}

}  // namespace

bool WholeScan::same_rows(const WholeScan& other) const {
    return relation == other.relation && value == other.value &&
           equal(conditions, other.conditions);
}

AttrNumber column_of_scan(const PlannedStmt* statement, AttrNumber number) {
    const SeqScan* const scan = only_scan(statement);
    return scan == nullptr ? InvalidAttrNumber
                           : column_of_table(statement->planTree, as_scan(scan), number);
}

WholeScan whole_scan_of(const PlannedStmt* statement, AttrNumber id, AttrNumber value,
                        ParamListInfo parameters, int keys) {
    const SeqScan* const node = only_scan(statement);
    if (node == nullptr) return {};
    const Scan* const scan = as_scan(node);
    const RangeTblEntry* const table = rt_fetch(scan->scanrelid, statement->rtable);
    if (table->rtekind != RTE_RELATION || table->tablesample != nullptr) return {};
    WholeScan found;
    found.relation = table->relid;
    found.id = id;
    found.value = column_of_table(statement->planTree, scan, value);
    if (id != WholeScan::kPlace) found.id = column_of_table(statement->planTree, scan, id);
    if (found.id == InvalidAttrNumber || found.value == InvalidAttrNumber) return {};
    for (int i = 0; i < keys; ++i) {
        const Var* const key =
            var_of_table(statement->planTree, scan, static_cast<AttrNumber>(value + 1 + i));
        if (key == nullptr || !is_own_type(key->vartype)) return {};
        found.keys[static_cast<std::size_t>(i)] = key->varattno;
    }
    if (scan->plan.qual == NIL) return found;
    found.conditions =
        reinterpret_cast<List*>(put_values(reinterpret_cast<Node*>(scan->plan.qual), parameters));
    if (!all_depend_on_row_alone(found.conditions, scan->scanrelid)) return {};
    ChangeVarNodes(reinterpret_cast<Node*>(found.conditions), static_cast<int>(scan->scanrelid),
                   kTable, 0);
    return found;
}

}  // namespace gputext
