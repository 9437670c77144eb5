#include "extension/rows/term_arguments.hpp"

extern "C" {
#include "utils/syscache.h"
}

#include "extension/rows/set_call.hpp"

namespace gputext {

Oid config_argument(FunctionCallInfo fcinfo, int argument) {
    refuse_null(fcinfo, argument, "config");
    const Oid config = PG_GETARG_OID(argument);
    if (!SearchSysCacheExists1(TSCONFIGOID, ObjectIdGetDatum(config)))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("text search configuration with OID %u does not exist", config)));
    return config;
}

std::uint32_t min_document_frequency_argument(FunctionCallInfo fcinfo, int argument) {
    refuse_null(fcinfo, argument, "min_document_frequency");
    const int32 frequency = PG_GETARG_INT32(argument);
    if (frequency < 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("min_document_frequency must be at least 1, not %d", frequency)));
    return static_cast<std::uint32_t>(frequency);
}

}  // namespace gputext
