// tests/live/next_oid/next_oid.cpp - sets the server's counter of OIDs, for tests of numbers that
// are given again
//
// A module of its own, which is not installed: nothing of the extension can do this.

extern "C" {
#include "postgres.h"

#include "access/transam.h"
#include "fmgr.h"
#include "storage/lwlock.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(set_next_oid);

/// (oid): void. The next OID that the server gives out is this one or, where it is in use, a later
/// one.
Datum set_next_oid(PG_FUNCTION_ARGS) {
    LWLockAcquire(OidGenLock, LW_EXCLUSIVE);
#if PG_VERSION_NUM >= 170000
    TransamVariables->nextOid = PG_GETARG_OID(0);
    TransamVariables->oidCount = 0;
#else
    ShmemVariableCache->nextOid = PG_GETARG_OID(0);
    ShmemVariableCache->oidCount = 0;
#endif
    LWLockRelease(OidGenLock);
    PG_RETURN_VOID();
}
}
