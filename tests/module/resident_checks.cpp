// tests/module/resident_checks.cpp - lets gputextd keep the values of small tables
//
// Only the module of the tests has this function. Tests create the SQL function, as a superuser
// may.

#include "extension/base/postgres.hpp"

extern "C" {
#include "fmgr.h"
}

#include "extension/resident/resident_request.hpp"

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_ask_from);

/// (seconds float8): void. From now on the session asks gputextd for values that take so long to
/// read.
PGDLLEXPORT Datum gputext_ask_from(PG_FUNCTION_ARGS) {
    ResidentRequest::fewest_seconds = PG_GETARG_FLOAT8(0);
    PG_RETURN_VOID();
}
}
