// The condition that two documents are near-duplicates, and what the planner is told of it

#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
}

#include <cstring>
#include <utility>

#include "cpp/documents/near_duplicate_check.hpp"
#include "extension/base/owned.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/index/access_method.hpp"
#include "extension/index/query_value.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext::index {
namespace {

const char* const kQueryName = "near_duplicate_query";

const CharacterLengths& characters_of(bool binary) {
    static const CharacterLengths bytes = CharacterLengths::single_byte();
    return binary ? bytes : database_characters();
}

bool equal(Bytes a, Bytes b) {
    return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// A document that many are compared with is prepared once. A call has it as either argument, and
/// always as the same one.
struct PreparedCheck {
    NearDuplicateCheck check;
    bool prepared = false;
    bool second = true;  // which argument was prepared

    /// Prepares `second`, unless the last call prepared it in vain.
    Result<bool> is_near(Bytes a, Bytes b, const CharacterLengths& characters, double threshold) {
        const Stop stop = stop_on_interrupt();
        if (prepared && threshold == check.threshold() && equal(check.document(), second ? b : a))
            return check.is_near(second ? a : b, stop);
        second = prepared ? !second : true;
        check.prepare(second ? b : a, characters, threshold, stop);
        const Result<bool> found = check.is_near(second ? a : b, stop);
        prepared = found.ok();  // a block of PL/pgSQL may go on after a cancel
        return found;
    }
};

/// The check that a call goes on with.
PreparedCheck* prepared_check(FmgrInfo* function) {
    if (function->fn_extra == nullptr)
        function->fn_extra = make_owned<PreparedCheck>(function->fn_mcxt);
    return static_cast<PreparedCheck*>(function->fn_extra);
}

bool is_near(FunctionCallInfo call, Bytes a, Bytes b, bool binary, double threshold) {
    check_threshold(threshold);
    PreparedCheck* const check = prepared_check(call->flinfo);
    bool near = false;
    attempt_or_raise(
        [&] { return take_value(check->is_near(a, b, characters_of(binary), threshold), near); });
    return near;
}

Datum compare(FunctionCallInfo fcinfo, bool binary, double threshold) {
    const varlena* const a = PG_GETARG_VARLENA_PP(0);
    const varlena* const b = PG_GETARG_VARLENA_PP(1);
    PG_RETURN_BOOL(is_near(fcinfo, bytes_of(a), bytes_of(b), binary, threshold));
}

Datum compare_with_query(FunctionCallInfo fcinfo, bool binary) {
    const QueryValue* const query = query_value(PG_GETARG_DATUM(1));
    if ((query->binary != 0) != binary)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("documents of the type %s are not compared with one of the type %s",
                               binary ? "bytea" : "text", binary ? "text" : "bytea")));
    PG_RETURN_BOOL(is_near(fcinfo, bytes_of(PG_GETARG_VARLENA_PP(0)), query->document(), binary,
                           query->threshold));
}

/// The last document that was compressed or out of line, as it was given and as it is.
struct LastDocument {
    varlena* given;
    varlena* document;
};

/// A document of the function's first argument. The executor makes the query anew for each row that
/// it rechecks: one of another table's row would be decompressed as often.
const varlena* read_document(FunctionCallInfo fcinfo) {
    auto* const given = reinterpret_cast<varlena*>(PG_GETARG_POINTER(0));
    if (!VARATT_IS_COMPRESSED(given) && !VARATT_IS_EXTERNAL_ONDISK(given))
        return PG_GETARG_VARLENA_PP(0);
    const MemoryContext context = fcinfo->flinfo->fn_mcxt;
    auto* last = static_cast<LastDocument*>(fcinfo->flinfo->fn_extra);
    if (last == nullptr)
        fcinfo->flinfo->fn_extra = last =
            static_cast<LastDocument*>(MemoryContextAllocZero(context, sizeof(LastDocument)));
    const Size size = VARSIZE_ANY(given);
    if (last->document != nullptr && VARSIZE_ANY(last->given) == size &&
        std::memcmp(last->given, given, size) == 0)
        return last->document;
    if (last->document != nullptr) {
        pfree(std::exchange(last->document, nullptr));
        pfree(std::exchange(last->given, nullptr));
    }
    const MemoryContext outside = MemoryContextSwitchTo(context);
    varlena* const document = PG_DETOAST_DATUM(PointerGetDatum(given));
    last->given = static_cast<varlena*>(palloc(size));
    std::memcpy(last->given, given, size);
    MemoryContextSwitchTo(outside);
    return last->document = document;
}

Datum make_query(FunctionCallInfo fcinfo, bool binary) {
    const double threshold = PG_GETARG_FLOAT8(1);
    check_threshold(threshold);
    PG_RETURN_POINTER(make_query_value(bytes_of(read_document(fcinfo)), binary, threshold));
}

// ---- The planner ----

/// The condition that an index answers in place of is_near_duplicate(column, document, threshold),
/// or with column and document the other way round; none where it does not.
Node* index_condition(SupportRequestIndexCondition* request) {
    if (!IsA(request->node, FuncExpr) || request->indexarg > 1) return nullptr;
    const auto* const call = reinterpret_cast<const FuncExpr*>(request->node);
    if (list_length(call->args) != 3) return nullptr;
    auto* const column = static_cast<Node*>(list_nth(call->args, request->indexarg));
    auto* const document = static_cast<Node*>(list_nth(call->args, 1 - request->indexarg));
    auto* const threshold = static_cast<Node*>(lthird(call->args));
    if (!is_pseudo_constant_for_index(request->root, document, request->index) ||
        !is_pseudo_constant_for_index(request->root, threshold, request->index))
        return nullptr;

    // What belongs to the function lies in its schema.
    const Oid schema = get_func_namespace(call->funcid);
    const Oid query_type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
                                           CStringGetDatum(kQueryName), ObjectIdGetDatum(schema));
    const Oid type = exprType(document);
    Oid parameters[] = {type, FLOAT8OID};
    const Oid constructor =
        GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid, CStringGetDatum(kQueryName),
                        PointerGetDatum(buildoidvector(parameters, lengthof(parameters))),
                        ObjectIdGetDatum(schema));
    if (!OidIsValid(query_type) || !OidIsValid(constructor)) return nullptr;
    const Oid condition =
        get_opfamily_member(request->opfamily, type, query_type, kNearQueryStrategy);
    if (!OidIsValid(condition)) return nullptr;

    FuncExpr* const query = makeFuncExpr(constructor, query_type, list_make2(document, threshold),
                                         InvalidOid, call->inputcollid, COERCE_EXPLICIT_CALL);
    request->lossy = false;
    return reinterpret_cast<Node*>(
        make_opclause(condition, BOOLOID, false, reinterpret_cast<Expr*>(column),
                      reinterpret_cast<Expr*>(query), InvalidOid, call->inputcollid));
}

}  // namespace
}  // namespace gputext::index

using namespace gputext;
using namespace gputext::index;

extern "C" {
SQL_FUNCTION(gputext_is_near_duplicate_text) {
    return compare(fcinfo, false, PG_GETARG_FLOAT8(2));
}

SQL_FUNCTION(gputext_is_near_duplicate_bytea) {
    return compare(fcinfo, true, PG_GETARG_FLOAT8(2));
}

SQL_FUNCTION(gputext_near_text) {
    return compare(fcinfo, false, near_duplicate_threshold());
}

SQL_FUNCTION(gputext_near_bytea) {
    return compare(fcinfo, true, near_duplicate_threshold());
}

SQL_FUNCTION(gputext_near_query_of_text) {
    return compare_with_query(fcinfo, false);
}

SQL_FUNCTION(gputext_near_query_of_bytea) {
    return compare_with_query(fcinfo, true);
}

SQL_FUNCTION(gputext_near_duplicate_query_text) {
    return make_query(fcinfo, false);
}

SQL_FUNCTION(gputext_near_duplicate_query_bytea) {
    return make_query(fcinfo, true);
}

/// "text,0.05,the document", or "bytea,0.05,\x00ff"
SQL_FUNCTION(gputext_near_duplicate_query_in) {
    char* const written = pstrdup(PG_GETARG_CSTRING(0));
    char* const threshold_text = std::strchr(written, ',');
    char* const document =
        threshold_text == nullptr ? nullptr : std::strchr(threshold_text + 1, ',');
    if (document != nullptr) *threshold_text = *document = '\0';
    const bool binary = std::strcmp(written, "bytea") == 0;
    if (document == nullptr || (!binary && std::strcmp(written, "text") != 0))
        ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                        errmsg("invalid input syntax for type %s: \"%s\"", kQueryName,
                               PG_GETARG_CSTRING(0)),
                        errdetail("It is text or bytea, the threshold, and the document, with "
                                  "commas between them.")));
    const double threshold =
        DatumGetFloat8(DirectFunctionCall1(float8in, CStringGetDatum(threshold_text + 1)));
    check_threshold(threshold);
    const Datum value = binary ? DirectFunctionCall1(byteain, CStringGetDatum(document + 1))
                               : CStringGetTextDatum(document + 1);
    PG_RETURN_POINTER(make_query_value(
        bytes_of(reinterpret_cast<const varlena*>(DatumGetPointer(value))), binary, threshold));
}

SQL_FUNCTION(gputext_near_duplicate_query_out) {
    const QueryValue* const query = query_value(PG_GETARG_DATUM(0));
    const Bytes document = query->document();
    const Datum value = PointerGetDatum(cstring_to_text_with_len(
        reinterpret_cast<const char*>(document.data()), static_cast<int>(document.size())));
    const char* const threshold =
        DatumGetCString(DirectFunctionCall1(float8out, Float8GetDatum(query->threshold)));
    PG_RETURN_CSTRING(psprintf("%s,%s,%s", query->binary != 0 ? "bytea" : "text", threshold,
                               query->binary != 0
                                   ? DatumGetCString(DirectFunctionCall1(byteaout, value))
                                   : TextDatumGetCString(value)));
}

SQL_FUNCTION(gputext_near_support) {
    Node* const request = reinterpret_cast<Node*>(PG_GETARG_POINTER(0));
    Node* answer = nullptr;
    if (IsA(request, SupportRequestSelectivity)) {
        reinterpret_cast<SupportRequestSelectivity*>(request)->selectivity = kNearSelectivity;
        answer = request;
    } else if (IsA(request, SupportRequestIndexCondition)) {
        Node* const condition =
            index_condition(reinterpret_cast<SupportRequestIndexCondition*>(request));
        if (condition != nullptr) answer = reinterpret_cast<Node*>(list_make1(condition));
    }
    PG_RETURN_POINTER(answer);
}

/// Selectivity of an operator, as restriction and as join condition.
SQL_FUNCTION(gputext_near_selectivity) {
    PG_RETURN_FLOAT8(kNearSelectivity);
}
}
