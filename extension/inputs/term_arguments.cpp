#include "extension/inputs/term_arguments.hpp"

extern "C" {
#include "utils/syscache.h"
}

namespace gputext {

Oid config_argument(const Arguments& arguments) {
    const Oid config = arguments.oid("config");
    if (!SearchSysCacheExists1(TSCONFIGOID, ObjectIdGetDatum(config)))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                        errmsg("text search configuration with OID %u does not exist", config)));
    return config;
}

}  // namespace gputext
