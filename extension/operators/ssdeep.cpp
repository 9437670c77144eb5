#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/builtins.h"
}

#include <cstring>

#include "cpp/documents/ssdeep.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/types/text_arguments.hpp"

using namespace gputext;

extern "C" {
/// Takes a text or a bytea: both are hashed byte by byte.
SQL_FUNCTION(gputext_ssdeep_hash) {
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

SQL_FUNCTION(gputext_ssdeep_compare) {
    const varlena* a = PG_GETARG_VARLENA_PP(0);
    const varlena* b = PG_GETARG_VARLENA_PP(1);
    int32 score = 0;
    Failure failure;
    if (!attempt(failure,
                 [&] { return take_value(ssdeep_compare(view_of(a), view_of(b)), score); }))
        ereport(ERROR,
                (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg("%s", failure.message)));
    PG_RETURN_INT32(score);
}
}
