#include "extension/rows/vector_arguments.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
}

#include <cstring>

#include "extension/rows/set_call.hpp"

namespace gputext {
namespace {

struct NamedMetric {
    const char* name;
    Metric metric;
};

constexpr NamedMetric kMetrics[] = {{"euclidean", Metric::euclidean},
                                    {"cosine", Metric::cosine},
                                    {"inner_product", Metric::inner_product},
                                    {"manhattan", Metric::manhattan}};

bool looks_like_type(const char* text) {
    const std::size_t length = std::strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_. []");
    return length > 0 && text[length] == '\0';
}

/// The functions for ids of type bigint end in a parameter id_type, to which PostgreSQL gives a
/// literal: it is of no type as yet, and that of a polymorphic parameter must have one. A database
/// where the extension was created by an earlier build may lack the parameter.
void refuse_type_name(FunctionCallInfo fcinfo, int argument) {
    if (PG_ARGISNULL(argument)) return;
    const Oid type = get_fn_expr_argtype(fcinfo->flinfo, argument);
    if (!OidIsValid(type) || type == TEXTOID || TypeCategory(type) != TYPCATEGORY_STRING) return;
    const char* const name = text_to_cstring(PG_GETARG_TEXT_PP(argument));
    ereport(ERROR,
            (errcode(ERRCODE_DATATYPE_MISMATCH),
             errmsg("id_type must be a value of the type of the ids, not a literal: \"%s\"", name),
             errhint("Write a null of that type right behind the inner query, as in "
                     "id_type => NULL::%s.",
                     looks_like_type(name) ? name : "uuid")));
}

}  // namespace

Metric metric_argument(FunctionCallInfo fcinfo, int argument) {
    const char* const name = text_argument(fcinfo, argument, "metric");
    for (const NamedMetric& known : kMetrics)
        if (std::strcmp(name, known.name) == 0) return known.metric;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("metric must be 'euclidean', 'cosine', 'inner_product' or 'manhattan', "
                           "not \"%s\"",
                           name)));
    pg_unreachable();
}

std::size_t k_argument(FunctionCallInfo fcinfo, int argument) {
    refuse_null(fcinfo, argument, "k");
    const int32 k = PG_GETARG_INT32(argument);
    if (k < 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("k must be at least 1, not %d", k)));
    return static_cast<std::size_t>(k);
}

Oid id_type_argument(FunctionCallInfo fcinfo, int argument, bool typed) {
    if (!typed) {
        refuse_type_name(fcinfo, PG_NARGS() - 1);
        return INT8OID;
    }
    const Oid type = get_fn_expr_argtype(fcinfo->flinfo, argument);
    if (!OidIsValid(type))
        ereport(ERROR, (errcode(ERRCODE_INDETERMINATE_DATATYPE),
                        errmsg("could not determine the type of the argument id_type")));
    return type;
}

}  // namespace gputext
