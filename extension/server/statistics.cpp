// extension/server/statistics.cpp - what SQL sees of devices, running operators and counters

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_authid.h"
#include "funcapi.h"
#include "lib/stringinfo.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
}

#include <algorithm>
#include <cmath>
#include <iterator>

#include "extension/base/sql_function.hpp"
#include "extension/server/daemon.hpp"
#include "extension/server/shared_state.hpp"

namespace gputext {
namespace {

// ---- gputext_devices ----

void put_device(ReturnSetInfo* result, int number, const SharedDevice& device,
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

// ---- gputext_activity ----

/// A copy of what a session shows, whole although it may be writing.
SharedActivity read_activity(const SharedActivity& shared) {
    for (;;) {
        CHECK_FOR_INTERRUPTS();
        const std::uint32_t before = *const_cast<const volatile std::uint32_t*>(&shared.changes);
        pg_read_barrier();
        const SharedActivity copy = shared;
        pg_read_barrier();
        const std::uint32_t after = *const_cast<const volatile std::uint32_t*>(&shared.changes);
        if (before == after && before % 2 == 0) return copy;
    }
}

/// Whether the user may see it: as in PostgreSQL's own views of activity.
bool may_see(const SharedActivity& activity) {
    return has_privs_of_role(GetUserId(), activity.role) ||
           has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
}

/// Null when there is no such device any more.
const char* name_of_device(std::int32_t number) {
    SharedState* state = shared_state();
    const char* name = nullptr;
    LWLockAcquire(&state->lock, LW_SHARED);
    if (number < state->daemon.devices) name = pstrdup(state->daemon.device[number].name);
    LWLockRelease(&state->lock);
    return name;
}

/// The columns of gputext_activity.
enum Column {
    pid,
    operation,
    device,
    device_name,
    phase,
    done,
    total,
    rate,
    epoch,
    loss,
    rows,
    bytes,
    seconds,
    started,
    columns
};

struct Row {
    Row() { std::fill(std::begin(nulls), std::end(nulls), true); }

    void put(Column column, Datum value) {
        values[column] = value;
        nulls[column] = false;
    }
    void put_text(Column column, const char* text) { put(column, CStringGetTextDatum(text)); }
    void put_number(Column column, std::uint64_t number) {
        put(column, Int64GetDatum(static_cast<int64>(number)));
    }

    Datum values[columns] = {};
    bool nulls[columns];
};

void put_place(Row& row, std::int32_t number) {
    if (number == kOnCpu) row.put_text(device, "cpu");
    if (number < 0) return;
    row.put_text(device, psprintf("%d", number));
    const char* name = name_of_device(number);
    if (name != nullptr) row.put_text(device_name, name);
}

void put_details(Row& row, const SharedActivity& activity) {
    row.put_text(operation, activity.operation);
    put_place(row, activity.device);
    row.put_text(phase, activity.phase);
    row.put_number(done, activity.done);
    if (activity.total > 0) row.put_number(total, activity.total);
    if (activity.rate > 0) row.put(rate, Float8GetDatum(activity.rate));
    if (activity.epoch > 0) {
        row.put(epoch, Int32GetDatum(static_cast<int32>(activity.epoch)));
        if (!std::isnan(activity.loss)) row.put(loss, Float8GetDatum(activity.loss));
    }
    row.put_number(rows, activity.rows);
    row.put_number(bytes, activity.bytes);
    const auto microseconds = static_cast<double>(GetCurrentTimestamp() - activity.start);
    row.put(seconds, Float8GetDatum(microseconds / 1e6));
    row.put(started, TimestampTzGetDatum(activity.start));
}

void put_activity(ReturnSetInfo* result, const SharedActivity& activity) {
    Row row;
    row.put(pid, Int32GetDatum(activity.pid));
    if (may_see(activity)) put_details(row, activity);
    tuplestore_putvalues(result->setResult, result->setDesc, row.values, row.nulls);
}

// ---- gputext_stat ----

std::uint64_t fallbacks_of(Fallback reason) {
    return pg_atomic_read_u64(&shared_state()->fallbacks[static_cast<int>(reason)]);
}

std::uint64_t all_fallbacks() {
    std::uint64_t sum = 0;
    for (int i = 0; i < static_cast<int>(Fallback::count); ++i)
        sum += fallbacks_of(static_cast<Fallback>(i));
    return sum;
}

/// An object of those that there were. The names need no quoting within.
Datum fallback_reasons() {
    StringInfoData json;
    initStringInfo(&json);
    for (int i = 0; i < static_cast<int>(Fallback::count); ++i) {
        const auto reason = static_cast<Fallback>(i);
        const std::uint64_t times = fallbacks_of(reason);
        if (times > 0)
            appendStringInfo(&json, "%s\"%s\": %llu", json.len > 0 ? ", " : "", name_of(reason),
                             static_cast<unsigned long long>(times));
    }
    return DirectFunctionCall1(jsonb_in, CStringGetDatum(psprintf("{%s}", json.data)));
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_devices) {
    InitMaterializedSRF(fcinfo, 0);
    auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
    const DaemonAccess access = reach_daemon(Want::device);
    if (!access.ready) {
        put_reason(result, access);
        PG_RETURN_NULL();
    }
    const SharedDaemon* daemon = copy_daemon();
    for (int i = 0; i < daemon->devices; ++i) put_device(result, i, daemon->device[i], access);
    PG_RETURN_NULL();
}

SQL_FUNCTION(gputext_activity) {
    InitMaterializedSRF(fcinfo, 0);
    const SharedState* state = shared_state();
    for (int i = 0; i < state->activities; ++i) {
        const SharedActivity activity = read_activity(state->activity[i]);
        if (activity.pid != 0)
            put_activity(reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo), activity);
    }
    PG_RETURN_NULL();
}

SQL_FUNCTION(gputext_stat) {
    constexpr int counters = static_cast<int>(Counter::count);
    TupleDesc columns;
    if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE)
        elog(ERROR, "gputext_stat must return a row");
    SharedState* state = shared_state();
    Datum values[counters + 3];
    bool nulls[lengthof(values)] = {};
    // Its columns begin with the counters, in their order.
    for (int i = 0; i < counters; ++i)
        values[i] = Int64GetDatum(static_cast<int64>(pg_atomic_read_u64(&state->counters[i])));
    values[counters] = Int64GetDatum(static_cast<int64>(all_fallbacks()));
    values[counters + 1] = fallback_reasons();
    values[counters + 2] = TimestampTzGetDatum(state->since);
    PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(columns, values, nulls)));
}
}
