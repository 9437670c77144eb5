#include "extension/word_arguments.hpp"

#include <cstring>

#include "extension/set_call.hpp"

namespace gputext {

WordMeasure measure_argument(FunctionCallInfo fcinfo, int argument) {
    const char* const name = text_argument(fcinfo, argument, "measure");
    if (std::strcmp(name, "lin") == 0) return WordMeasure::lin;
    if (std::strcmp(name, "cosine") == 0) return WordMeasure::cosine;
    if (std::strcmp(name, "jaccard") == 0) return WordMeasure::jaccard;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("measure must be 'lin', 'cosine' or 'jaccard', not \"%s\"", name)));
    pg_unreachable();
}

WordWeight weight_argument(FunctionCallInfo fcinfo, int argument) {
    const char* const name = text_argument(fcinfo, argument, "weight");
    if (std::strcmp(name, "lin") == 0) return WordWeight::lin;
    if (std::strcmp(name, "ppmi") == 0) return WordWeight::ppmi;
    if (std::strcmp(name, "count") == 0) return WordWeight::count;
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("weight must be 'lin', 'ppmi' or 'count', not \"%s\"", name)));
    pg_unreachable();
}

double discount_argument(FunctionCallInfo fcinfo, int argument) {
    refuse_null(fcinfo, argument, "discount");
    const double discount = PG_GETARG_FLOAT8(argument);
    if (!(discount >= 0 && discount <= WeightParameters::kMostDiscount))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("discount must be from 0 to %g, not %g",
                               WeightParameters::kMostDiscount, discount)));
    return discount;
}

std::uint64_t features_argument(FunctionCallInfo fcinfo, int argument) {
    return PG_ARGISNULL(argument) ? 0 : count_argument(fcinfo, argument, "features");
}

std::uint32_t count_argument(FunctionCallInfo fcinfo, int argument, const char* name) {
    refuse_null(fcinfo, argument, name);
    const int32 count = PG_GETARG_INT32(argument);
    if (count < 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("%s must be at least 1, not %d", name, count)));
    return static_cast<std::uint32_t>(count);
}

bool bool_argument(FunctionCallInfo fcinfo, int argument, const char* name) {
    refuse_null(fcinfo, argument, name);
    return PG_GETARG_BOOL(argument);
}

}  // namespace gputext
