// gputext_connect(), gputext_send(), gputext_answers(), gputext_disconnect(): calls on other
// servers, for the functions _distributed of SQL

#include "extension/remote/remote_call.hpp"

#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
}

namespace gputext {
namespace {

struct Strings {
    const char** texts;
    int count;
};

/// Of an array of text or of name.
Strings strings_of(ArrayType* array) {
    const bool is_name = ARR_ELEMTYPE(array) == NAMEOID;
    Datum* values;
    bool* nulls;
    Strings strings;
    deconstruct_array(array, ARR_ELEMTYPE(array), is_name ? NAMEDATALEN : -1, false,
                      is_name ? TYPALIGN_CHAR : TYPALIGN_INT, &values, &nulls, &strings.count);
    strings.texts = static_cast<const char**>(palloc(sizeof(char*) * (strings.count + 1)));
    for (int i = 0; i < strings.count; ++i) {
        if (nulls[i])
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                            errmsg("an element of the array is null")));
        strings.texts[i] =
            is_name ? NameStr(*DatumGetName(values[i])) : TextDatumGetCString(values[i]);
    }
    return strings;
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_connect);
PG_FUNCTION_INFO_V1(gputext_send);
PG_FUNCTION_INFO_V1(gputext_answers);
PG_FUNCTION_INFO_V1(gputext_disconnect);

PGDLLEXPORT Datum gputext_connect(PG_FUNCTION_ARGS) {
    const Strings servers = strings_of(PG_GETARG_ARRAYTYPE_P(1));
    PG_RETURN_INT32(
        begin_remote_call(text_to_cstring(PG_GETARG_TEXT_PP(0)), servers.texts, servers.count));
}

PGDLLEXPORT Datum gputext_send(PG_FUNCTION_ARGS) {
    RemoteCall& call = find_remote_call(PG_GETARG_INT32(0));
    const Strings statements = strings_of(PG_GETARG_ARRAYTYPE_P(1));
    if (statements.count != servers_of(call))
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("there are %d statements for %d servers", statements.count,
                               servers_of(call))));
    send_statements(call, statements.texts);
    PG_RETURN_VOID();
}

PGDLLEXPORT Datum gputext_answers(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
    const auto* const result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    read_answers(find_remote_call(PG_GETARG_INT32(0)), result->setDesc, result->setResult);
    PG_RETURN_NULL();
}

PGDLLEXPORT Datum gputext_disconnect(PG_FUNCTION_ARGS) {
    end_remote_call(find_remote_call(PG_GETARG_INT32(0)));
    PG_RETURN_VOID();
}
}
