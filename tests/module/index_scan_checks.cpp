// tests/module/index_scan_checks.cpp - shows when a scan of an index ends
//
// Only the module of the tests has this function. Tests create the SQL function, as a superuser
// may.

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/genam.h"
#include "miscadmin.h"
}

#include "extension/index/access_method.hpp"

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_rows_after_cancel);

/// (index regclass, document text): integer, how many rows a scan for documents near that one gives
/// after its first one, when a request to cancel the statement comes with that.
PGDLLEXPORT Datum gputext_rows_after_cancel(PG_FUNCTION_ARGS) {
    const Relation index = index_open(PG_GETARG_OID(0), AccessShareLock);
    ScanKeyData condition{};
    condition.sk_attno = 1;
    condition.sk_strategy = index::kNearStrategy;
    condition.sk_argument = PG_GETARG_DATUM(1);
    const IndexScanDesc scan = index::begin_scan(index, 1, 0);
    index::restart_scan(scan, &condition, 1, nullptr, 0);
    if (!index::next_row(scan, ForwardScanDirection))
        ereport(ERROR, (errmsg("there is no row near the document")));
    // As the signal's handler does; a scan that looks does not come back.
    QueryCancelPending = true;
    InterruptPending = true;
    int32 rows = 0;
    while (index::next_row(scan, ForwardScanDirection)) ++rows;
    QueryCancelPending = false;
    index::end_scan(scan);
    index_close(index, AccessShareLock);
    PG_RETURN_INT32(rows);
}
}
