#include "extension/inputs/arguments.hpp"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "parser/parse_coerce.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/regproc.h"
#include "utils/syscache.h"
}

#include <cstring>

namespace gputext {
namespace {

bool looks_like_type(const char* text) {
    const std::size_t length = std::strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_. []");
    return length > 0 && text[length] == '\0';
}

/// A literal is of no type as yet, and the type of a polymorphic parameter must be known; so
/// PostgreSQL gives literals to the functions for ids of type bigint, whose id_type takes them.
void refuse_type_name(const Arguments& arguments) {
    if (arguments.is_null("id_type")) return;
    const Oid type = arguments.type("id_type");
    if (!OidIsValid(type) || type == TEXTOID || TypeCategory(type) != TYPCATEGORY_STRING) return;
    const char* const name = arguments.text("id_type");
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg("id_type must be a value of the type of the ids, not a literal: \"%s\"", name),
             errhint("Write a null of that type right after the inner query, as in "
                     "id_type => NULL::%s.",
                     looks_like_type(name) ? name : "uuid")));
}

}  // namespace

Arguments::Arguments(FunctionCallInfo fcinfo) : call_(fcinfo) {
    const HeapTuple function = SearchSysCache1(PROCOID, ObjectIdGetDatum(fcinfo->flinfo->fn_oid));
    if (!HeapTupleIsValid(function))
        elog(ERROR, "cache lookup failed for function %u", fcinfo->flinfo->fn_oid);
    char* modes = nullptr;
    Oid* types = nullptr;
    // Parameters of the result follow those of the call, as RETURNS TABLE has it.
    get_func_arg_info(function, &types, &names_, &modes);
    types_ = types;
    size_ = names_ == nullptr ? 0 : PG_NARGS();
    ReleaseSysCache(function);
}

int Arguments::find(const char* name) const {
    for (int i = 0; i < size_; ++i)
        if (std::strcmp(names_[i], name) == 0) return i;
    return -1;
}

int Arguments::place(const char* name) const {
    const int found = find(name);
    if (found < 0)
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_PARAMETER),
                 errmsg("function %s has no parameter \"%s\"",
                        format_procedure(call_->flinfo->fn_oid), name),
                 errhint("The library and the SQL objects are of different releases: run ALTER "
                         "EXTENSION gputext UPDATE, or start a new session.")));
    return found;
}

bool Arguments::is_null(const char* name) const {
    return call_->args[place(name)].isnull;
}

Datum Arguments::value(const char* name) const {
    const int argument = place(name);
    if (call_->args[argument].isnull)
        ereport(ERROR,
                (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", name)));
    return call_->args[argument].value;
}

const char* Arguments::text(const char* name) const {
    return text_to_cstring(PG_DETOAST_DATUM_PACKED(value(name)));
}

TextArray Arguments::texts(const char* name) const {
    Datum* values;
    bool* nulls;
    int count;
    deconstruct_array(DatumGetArrayTypeP(value(name)), TEXTOID, -1, false, TYPALIGN_INT, &values,
                      &nulls, &count);
    TextArray texts{static_cast<const char**>(palloc(sizeof(char*) * (count + 1))), count};
    for (int i = 0; i < count; ++i) {
        if (nulls[i])
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                            errmsg("an element of %s is null", name)));
        texts.values[i] = text_to_cstring(PG_DETOAST_DATUM_PACKED(values[i]));
    }
    return texts;
}

bool Arguments::flag(const char* name) const {
    return DatumGetBool(value(name));
}

std::int32_t Arguments::integer(const char* name) const {
    return DatumGetInt32(value(name));
}

std::int64_t Arguments::big_integer(const char* name) const {
    return DatumGetInt64(value(name));
}

double Arguments::number(const char* name) const {
    return DatumGetFloat8(value(name));
}

Oid Arguments::oid(const char* name) const {
    return DatumGetObjectId(value(name));
}

std::uint32_t Arguments::count(const char* name) const {
    const std::int32_t count = integer(name);
    if (count < 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s must be at least 1, not %d", name, count)));
    return static_cast<std::uint32_t>(count);
}

Oid Arguments::type(const char* name) const {
    return get_fn_expr_argtype(call_->flinfo, place(name));
}

bool Arguments::is_polymorphic(const char* name) const {
    return IsPolymorphicType(types_[place(name)]);
}

Oid id_type_argument(const Arguments& arguments) {
    if (!arguments.has("id_type")) return INT8OID;
    if (!arguments.is_polymorphic("id_type")) {
        refuse_type_name(arguments);
        return INT8OID;
    }
    const Oid type = arguments.type("id_type");
    if (!OidIsValid(type))
        ereport(ERROR, (errcode(ERRCODE_INDETERMINATE_DATATYPE),
                        errmsg("could not determine the type of the argument id_type")));
    return type;
}

void refuse_null_after_queries(const Arguments& arguments, const char* name) {
    if (!arguments.is_null(name)) return;
    const bool has_type = !arguments.has("id_type") || arguments.is_polymorphic("id_type");
    ereport(ERROR,
            (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("%s must not be null", name),
             has_type ? 0
                      : errhint("If the null says of which type the ids are, write its name, as in "
                                "id_type => NULL::integer.")));
}

}  // namespace gputext
