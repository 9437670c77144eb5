#include "extension/planner/distance_operators.hpp"

extern "C" {
#include "access/detoast.h"
#include "access/htup_details.h"
#include "catalog/pg_language_d.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

#include <cstring>

#include "extension/inputs/trigram_reader.hpp"
#include "extension/types/distance_names.hpp"

namespace gputext {
namespace {

/// Whether operator and function belong to the extension. Only a superuser makes functions in C,
/// but any role that owns an extension may add others to it, which are in other languages.
bool belong_to(Oid oper, Oid function, const char* extension) {
    return belongs_to_extension(OperatorRelationId, oper, extension) &&
           belongs_to_extension(ProcedureRelationId, function, extension);
}

bool is_immutable_c_function(Oid function) {
    const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple)) return false;
    const auto* const row = reinterpret_cast<const FormData_pg_proc*>(GETSTRUCT(tuple));
    const bool is = row->prolang == ClanguageId && row->proisstrict && !row->proretset &&
                    row->provolatile == PROVOLATILE_IMMUTABLE;
    ReleaseSysCache(tuple);
    return is;
}

/// Whether it runs that function of a library.
bool runs(Oid function, const char* symbol) {
    const HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(function));
    if (!HeapTupleIsValid(tuple)) return false;
    bool null = false;
    const Datum source = SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &null);
    const bool does = !null && std::strcmp(TextDatumGetCString(source), symbol) == 0;
    ReleaseSysCache(tuple);
    return does;
}

struct Operands {
    Oid type;
    Oid result;
    Oid function;
    std::optional<Metric> metric;
};

std::optional<Operands> operands_of(Oid oper) {
    const HeapTuple tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(oper));
    if (!HeapTupleIsValid(tuple)) return std::nullopt;
    const auto* const row = reinterpret_cast<const FormData_pg_operator*>(GETSTRUCT(tuple));
    std::optional<Operands> found;
    if (row->oprleft == row->oprright)
        found = Operands{row->oprleft, row->oprresult, row->oprcode,
                         metric_of_operator(NameStr(row->oprname))};
    ReleaseSysCache(tuple);
    return found;
}

bool is_trigram_distance(Oid oper, const Operands& found) {
    return found.type == TEXTOID && found.result == FLOAT4OID &&
           is_immutable_c_function(found.function) && runs(found.function, "similarity_dist") &&
           belong_to(oper, found.function, "pg_trgm") && OidIsValid(trigram_function());
}

}  // namespace

bool is_long_text(Datum text) {
    return toast_raw_datum_size(text) > kLongestText + VARHDRSZ;
}

std::optional<DistanceOperator> distance_operator_of(Oid oper) {
    const std::optional<Operands> found = operands_of(oper);
    if (found && is_trigram_distance(oper, *found))
        return DistanceOperator{found->function, true, {}, {}, true};
    if (!found || !found->metric || found->result != FLOAT8OID) return std::nullopt;
    const std::optional<VectorType> type = vector_type_of(found->type);
    if (!type || type->form == VectorType::Form::sparse || type->element == ElementType::int32 ||
        !is_immutable_c_function(found->function))
        return std::nullopt;
    const bool exact = type->form == VectorType::Form::array;
    if (!belong_to(oper, found->function, exact ? "gputext" : "vector")) return std::nullopt;
    return DistanceOperator{found->function, false, *found->metric, *type, exact};
}

}  // namespace gputext
