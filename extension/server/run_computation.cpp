#include "extension/server/run_computation.hpp"

extern "C" {
#include "storage/ipc.h"
#include "utils/timestamp.h"
}

#include <memory>
#include <optional>

#include "cpp/base/job.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/daemon.hpp"
#include "extension/server/device_job.hpp"
#include "extension/server/running_job.hpp"
#include "extension/server/settings.hpp"
#include "extension/server/shared_state.hpp"

namespace gputext {
namespace {

/// What works on a computation, which is to end before the computation does.
struct Run {
    Run(Computation& what, TimeSplit& split) : computation(what), times(split), size(what.size()) {}

    Computation& computation;
    TimeSplit& times;
    JobSize size;
    Job::Work work = [this](Execution& execution) { return computation.compute(execution); };
    SessionJob job;
    std::unique_ptr<DaemonConnection> connection;
};

// ---- Without a device ----

/// None when the CPU is not to take over from a device that has failed so.
std::optional<Fallback> reason_of(ErrorCode code) {
    switch (code) {
        case ErrorCode::out_of_memory:
            return Fallback::out_of_memory;
        case ErrorCode::device_error:
        case ErrorCode::device_lost:
            return Fallback::device_error;
        case ErrorCode::unavailable:
            return Fallback::daemon_lost;
        default:
            return std::nullopt;
    }
}

/// A machine without a GPU is nothing to tell every user of.
void fall_back(Fallback reason, const char* message, const char* hint) {
    count_fallback(reason);
    ereport(
        reason == Fallback::no_device ? DEBUG1 : NOTICE,
        (errmsg("computing on the CPU: %s", message), hint[0] != '\0' ? errhint("%s", hint) : 0));
}

constexpr char kUseCpu[] = "With gputext.device set to auto or cpu it is computed on the CPU.";

/// There is no gputextd to send a job to.
void do_without(const DaemonAccess& access) {
    if (device_setting() == DeviceSetting::automatic)
        return fall_back(access.reason, access.message, access.hint);
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("%s", access.message),
                    errhint("%s", access.hint[0] != '\0' ? access.hint : kUseCpu)));
}

/// A job has failed there.
void do_without(Failure failure) {
    const std::optional<Fallback> reason = reason_of(failure.code);
    if (reason && failure.hint[0] == '\0' && device_setting() == DeviceSetting::gpu)
        copy_text(failure.hint, kUseCpu);
    if (!reason || device_setting() == DeviceSetting::gpu) raise_failure(failure);
    fall_back(*reason, failure.message, failure.hint);
}

// ---- On a device ----

bool device_is_wanted(const JobSize& size) {
    switch (device_setting()) {
        case DeviceSetting::automatic:
            return worth_a_device(size);
        case DeviceSetting::gpu:
            return true;
        case DeviceSetting::cpu:
            return false;
    }
    pg_unreachable();
}

void count_device_job(const DeviceJobResult& result) {
    add_to_counter(Counter::gpu_jobs);
    add_to_counter(Counter::gpu_milliseconds, static_cast<std::uint64_t>(1000 * result.seconds));
    add_to_counter(Counter::retries, result.retries);
}

/// False when the CPU is to do it. A job that gputextd has not looked at is sent once more; one
/// that it has may be what has ended it.
bool compute_on_device(Run& run) {
    if (!run.computation.has_device_job() || !device_is_wanted(run.size)) return false;
    const Want want = device_setting() == DeviceSetting::gpu ? Want::device : Want::device_or_cpu;
    pid_t ended = 0;
    for (bool again = false;; again = true) {
        show_step({"waiting for a device", 0, 0, kNowhereYet});
        const DaemonAccess access = reach_daemon(want, ended);
        if (!access.ready) {
            do_without(access);
            return false;
        }
        const DeviceJobResult result = run_device_job(run.computation, run.connection, again);
        run.connection.reset();
        if (result.end == JobEnd::answered) {
            run.times.lap("on a device", result.phases.text);
            count_device_job(result);
            return true;
        }
        if (result.end == JobEnd::failed && run.computation.copes_with(result.failure.code)) {
            run.times.lap("on a device");
            return true;
        }
        if (result.end == JobEnd::failed || again) {
            do_without(result.failure);
            return false;
        }
        ended = access.daemon;
    }
}

// ---- On the CPU ----

void compute_on_cpu(Run& run) {
    run.computation.prepare_for_cpu();
    const TimestampTz begin = GetCurrentTimestamp();
    run.job.start(run.work);
    finish_job(run.job.job(), kOnCpu);
    PhaseText phases;
    Failure failure;
    attempt(failure, [&]() -> Status {
        phases.set(run.job.job().execution().phase_times());
        return {};
    });
    run.times.lap("on the CPU", phases.text);
    run.job.end();
    add_to_counter(Counter::cpu_jobs);
    add_to_counter(
        Counter::cpu_milliseconds,
        static_cast<std::uint64_t>(TimestampDifferenceMilliseconds(begin, GetCurrentTimestamp())));
}

/// After an error, or when the session ends with a code. Nothing computes any more when it returns.
void abandon(int code, Datum argument) {
    auto* run = reinterpret_cast<Run*>(DatumGetPointer(argument));
    run->job.end();
    run->connection.reset();
    const bool cancelled = code != 0 || geterrcode() == ERRCODE_QUERY_CANCELED;
    add_to_counter(cancelled ? Counter::cancelled : Counter::failures);
}

}  // namespace

void run_computation(Computation& computation, TimeSplit& times, MemoryContext context) {
    Run* run = make_owned<Run>(context, computation, times);
    PG_ENSURE_ERROR_CLEANUP(abandon, PointerGetDatum(run));
    {
        if (!compute_on_device(*run)) compute_on_cpu(*run);
    }
    PG_END_ENSURE_ERROR_CLEANUP(abandon, PointerGetDatum(run));
    add_to_counter(Counter::rows, run->size.rows);
    add_to_counter(Counter::bytes, run->size.bytes);
}

}  // namespace gputext
