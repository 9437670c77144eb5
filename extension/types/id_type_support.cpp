// The planner's look at calls with the argument id_type
//
// PostgreSQL 15 derives the types of a polymorphic function's result columns from the arguments in
// the order in which they are written, whatever their names (resolve_polymorphic_tupdesc() in
// funcapi.c). With id_type elsewhere than right after the inner query, a statement is parsed for
// ids of another argument's type, and would end in "attribute 1 of type record has wrong type" once
// all has been computed. While the planner simplifies a call, the query still has it as it was
// written, so both types can be compared, and the error can say what to write.

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
}

#include <algorithm>

namespace gputext {
namespace {

/// The types of the result's columns, as PostgreSQL derives them from the call; none where it
/// cannot.
TupleDesc columns_of(Node* call) {
    TupleDesc columns = nullptr;
    return get_expr_result_type(call, nullptr, &columns) == TYPEFUNC_COMPOSITE ? columns : nullptr;
}

/// The call with its arguments in the order of the function's parameters.
Node* reordered(FuncExpr* written) {
    HeapTuple function = SearchSysCache1(PROCOID, ObjectIdGetDatum(written->funcid));
    if (!HeapTupleIsValid(function)) return nullptr;
    auto* call = makeNode(FuncExpr);
    *call = *written;
    call->args = expand_function_arguments(written->args, false, written->funcresulttype, function);
    ReleaseSysCache(function);
    return reinterpret_cast<Node*>(call);
}

bool has_named_argument(const FuncExpr* call) {
    ListCell* cell;
    foreach (cell, call->args)
        if (IsA(lfirst(cell), NamedArgExpr)) return true;
    return false;
}

/// "gpu_knn(queries, items, id_type, ...)"
const char* parameters_to_id_type(Oid function) {
    HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple)) return "the inner query, id_type";
    Oid* types;
    char** names;
    char* modes;
    const int count = get_func_arg_info(tuple, &types, &names, &modes);
    const char* list = "";
    for (int i = 0; i < count && names != nullptr; ++i) {
        list = psprintf("%s%s%s", list, i == 0 ? "" : ", ", names[i]);
        if (types[i] == ANYELEMENTOID) break;
    }
    const char* const name =
        NameStr(reinterpret_cast<const FormData_pg_proc*>(GETSTRUCT(tuple))->proname);
    const char* const text = psprintf("%s(%s, ...)", name, list);
    ReleaseSysCache(tuple);
    return text;
}

void check_written_call(FuncExpr* written) {
    const TupleDesc parsed = columns_of(reinterpret_cast<Node*>(written));
    Node* const call = reordered(written);
    const TupleDesc right = call == nullptr ? nullptr : columns_of(call);
    if (parsed == nullptr || right == nullptr) return;
    for (int i = 0; i < std::min(parsed->natts, right->natts); ++i) {
        const Oid type = TupleDescAttr(right, i)->atttypid;
        if (TupleDescAttr(parsed, i)->atttypid == type) continue;
        ereport(
            ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg("the argument id_type does not stand right after the inner query"),
             errdetail("PostgreSQL takes the type of the ids from the argument that stands "
                       "there, whatever its name: %s, not %s.",
                       format_type_be(TupleDescAttr(parsed, i)->atttypid), format_type_be(type)),
             errhint("Write the arguments in the order %s, with id_type => NULL::%s.",
                     parameters_to_id_type(written->funcid), format_type_be(type))));
    }
}

/// Every call of the function in FROM that still is as it was written.
void check_calls(const Query* query, Oid function) {
    ListCell* relation;
    foreach (relation, query->rtable) {
        const auto* entry = static_cast<const RangeTblEntry*>(lfirst(relation));
        if (entry->rtekind != RTE_FUNCTION) continue;
        ListCell* cell;
        foreach (cell, entry->functions) {
            Node* const node = static_cast<const RangeTblFunction*>(lfirst(cell))->funcexpr;
            if (node == nullptr || !IsA(node, FuncExpr)) continue;
            auto* const call = reinterpret_cast<FuncExpr*>(node);
            if (call->funcid == function && has_named_argument(call)) check_written_call(call);
        }
    }
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_id_type_support);

PGDLLEXPORT Datum gputext_id_type_support(PG_FUNCTION_ARGS) {
    Node* const request = reinterpret_cast<Node*>(PG_GETARG_POINTER(0));
    if (IsA(request, SupportRequestSimplify)) {
        const auto* simplify = reinterpret_cast<const SupportRequestSimplify*>(request);
        if (simplify->root != nullptr && simplify->root->parse != nullptr)
            check_calls(simplify->root->parse, simplify->fcall->funcid);
    }
    Node* const other_call = nullptr;  // the call stays as it is
    PG_RETURN_POINTER(other_call);
}
}
