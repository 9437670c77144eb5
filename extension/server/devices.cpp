#include "extension/base/postgres.hpp"

extern "C" {
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"
}

#include "extension/server/daemon.hpp"
#include "extension/server/shared_state.hpp"

namespace gputext {
namespace {

void put_row(ReturnSetInfo* result, int number, const SharedDevice& device,
             const DaemonAccess& access) {
    const char* status = "ready";
    if (access.difference[0] != '\0') status = psprintf("ready; %s", access.difference);
    Datum values[] = {Int32GetDatum(number), CStringGetTextDatum(device.name),
                      Int64GetDatum(static_cast<int64>(device.memory)),
                      CStringGetTextDatum(device.driver), CStringGetTextDatum(status)};
    bool nulls[lengthof(values)] = {};
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

void put_reason(ReturnSetInfo* result, const DaemonAccess& access) {
    Datum values[5] = {};
    bool nulls[5] = {true, true, true, true, false};
    values[4] = CStringGetTextDatum(access.message);
    tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
}

/// A copy: rows are made without the lock.
SharedDaemon* copy_daemon() {
    auto* copy = static_cast<SharedDaemon*>(palloc(sizeof(SharedDaemon)));
    SharedState* state = shared_state();
    LWLockAcquire(&state->lock, LW_SHARED);
    *copy = state->daemon;
    LWLockRelease(&state->lock);
    return copy;
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
PG_FUNCTION_INFO_V1(gputext_devices);

PGDLLEXPORT Datum gputext_devices(PG_FUNCTION_ARGS) {
    InitMaterializedSRF(fcinfo, 0);
    auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    const DaemonAccess access = reach_daemon(Want::device);
    if (!access.ready) {
        put_reason(result, access);
        PG_RETURN_NULL();
    }
    const SharedDaemon* daemon = copy_daemon();
    for (int i = 0; i < daemon->devices; ++i) put_row(result, i, daemon->device[i], access);
    PG_RETURN_NULL();
}
}
