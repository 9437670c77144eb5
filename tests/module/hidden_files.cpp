// tests/module/hidden_files.cpp - keeps other processes from the files that a session has opened
//
// Only the module of the tests has this function. Tests create the SQL function, as a superuser
// may.

#include "extension/base/postgres.hpp"

#include <sys/prctl.h>

extern "C" {
PG_FUNCTION_INFO_V1(gputext_hide_files);

/// (): void. From then on the system lets no process of the server's user open /proc/PID/fd of this
/// one, as where processes are hidden from each other.
PGDLLEXPORT Datum gputext_hide_files(PG_FUNCTION_ARGS) {
    if (prctl(PR_SET_DUMPABLE, 0) != 0)
        ereport(ERROR, (errcode(ERRCODE_SYSTEM_ERROR), errmsg("could not hide files: %m")));
    PG_RETURN_VOID();
}
}
