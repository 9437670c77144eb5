#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/builtins.h"
}

#include <cstring>

#include "cpp/documents/ssdeep.hpp"
#include "extension/base/failure.hpp"
#include "extension/types/text_arguments.hpp"

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_ssdeep_hash);
PG_FUNCTION_INFO_V1(gputext_ssdeep_compare);

/// Takes a text or a bytea: both are hashed byte by byte.
PGDLLEXPORT Datum gputext_ssdeep_hash(PG_FUNCTION_ARGS) {
    const varlena* document = PG_GETARG_VARLENA_PP(0);
    char signature[160];  // 10 digits, 64 and 32 letters, 2 colons
    attempt_or_raise([&]() -> Status {
        const Result<std::string> hash = ssdeep_hash(bytes_of(document), stop_on_interrupt());
        if (!hash.ok()) return hash.status();
        copy_text(signature, hash->c_str());
        return {};
    });
    PG_RETURN_TEXT_P(cstring_to_text(signature));
}

PGDLLEXPORT Datum gputext_ssdeep_compare(PG_FUNCTION_ARGS) {
    const varlena* a = PG_GETARG_VARLENA_PP(0);
    const varlena* b = PG_GETARG_VARLENA_PP(1);
    int32 score = 0;
    Failure failure;
    if (!attempt(failure, [&]() -> Status {
            const Result<int> result = ssdeep_compare(view_of(a), view_of(b));
            if (!result.ok()) return result.status();
            score = *result;
            return {};
        }))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg("%s", failure.message)));
    PG_RETURN_INT32(score);
}
}
