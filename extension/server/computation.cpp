#include "extension/server/computation.hpp"

extern "C" {
#include "storage/ipc.h"
#include "utils/timestamp.h"
}

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "cpp/base/byte_text.hpp"
#include "cpp/base/job.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/daemon.hpp"
#include "extension/server/session_job.hpp"
#include "extension/server/settings.hpp"
#include "extension/server/shared_state.hpp"
#include "extension/server/time_split.hpp"

namespace gputext {
namespace {

// ---- A job of gputextd ----

using Connection = std::unique_ptr<DaemonConnection>;

enum class JobEnd {
    none,  // so far
    answered,
    refused,  // gputextd did not look at the job, or ends for a reason that is not the job
    failed
};

struct DeviceJobResult {
    JobEnd end;
    Failure failure;        // unless answered
    double seconds;         // on the device, when answered
    std::uint32_t retries;  // the same
    PhaseText phases;       // and bytes that were copied to devices; the same
    double sending;         // seconds until the job was sent
};

// gputextd greets at once, and speaks some times a second while a job waits or runs.
constexpr long kTimeToGreet = 5000;   // milliseconds
constexpr long kMostSilence = 10000;  // milliseconds

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// What is known of a job at gputextd.
struct Progressing {
    char phase[sizeof SharedActivity::phase];
    std::uint64_t done;
    std::uint64_t total;
    std::int32_t device;
    std::uint32_t epoch;
    double loss;
    TimestampTz heard_at;
};

void show(Computation& computation, const Step& step) {
    show_step(step);
    computation.show(step);
}

// ---- Events ----

void note(Progressing& now, const Progress& progress) {
    copy_text(now.phase, progress.phase.c_str());
    now.done = progress.done;
    now.total = progress.total;
    now.device = progress.device < 0 ? kNowhereYet : progress.device;
    now.epoch = progress.epoch;
    now.loss = progress.loss;
}

Status take_answer(Computation& computation, const DaemonEvent& event, const JobReport& report,
                   DeviceJobResult& result) {
    const auto begin = Clock::now();
    GPUTEXT_TRY(computation.take(event, stop_on_interrupt()));
    result.end = JobEnd::answered;
    result.seconds = report.seconds;
    result.retries = report.retries;
    std::vector<PhaseTime> phases{{"sending the job", result.sending}};
    phases.insert(phases.end(), report.phases.begin(), report.phases.end());
    phases.push_back({"taking the answer", seconds_since(begin)});
    result.phases.set(phases);
    result.phases.add(("copied " + byte_text(report.uploaded) + " from the host").c_str());
    return {};
}

/// An error ends the job, as a failure unless the result says else.
Status understand(Computation& computation, const DaemonEvent& event, Progressing& now,
                  DeviceJobResult& result) {
    now.heard_at = GetCurrentTimestamp();
    if (const auto* progress = std::get_if<Progress>(&event)) note(now, *progress);
    if (const JobReport* report = report_of(event))
        return take_answer(computation, event, *report, result);
    if (const auto* failed = std::get_if<Failed>(&event)) {
        if (failed->of_job && failed->status.code() == ErrorCode::unavailable)
            result.end = JobEnd::refused;
        return failed->status;
    }
    return {};
}

/// Takes in what has arrived.
void receive_all(Computation& computation, DaemonConnection& connection, Progressing& now,
                 DeviceJobResult& result) {
    const bool ok = attempt(result.failure, [&]() -> Status {
        while (result.end == JobEnd::none) {
            const Result<std::optional<DaemonEvent>> event = connection.receive();
            if (!event.ok()) {
                if (!connection.greeted()) result.end = JobEnd::refused;
                return event.status();
            }
            if (!event->has_value()) return {};
            GPUTEXT_TRY(understand(computation, **event, now, result));
        }
        return {};
    });
    if (!ok && result.end == JobEnd::none) result.end = JobEnd::failed;
}

/// It hangs, or has been stopped.
bool is_silent(const DaemonConnection& connection, const Progressing& now) {
    return TimestampDifferenceMilliseconds(now.heard_at, GetCurrentTimestamp()) >
           (connection.greeted() ? kMostSilence : kTimeToGreet);
}

/// A job that it had may be the cause.
void end_in_silence(const DaemonConnection& connection, DeviceJobResult& result) {
    doubt_daemon();
    result.end = connection.greeted() ? JobEnd::failed : JobEnd::refused;
    result.failure.code = ErrorCode::unavailable;
    copy_text(result.failure.message, "gputextd does not answer");
}

void wait_for_end(Computation& computation, DaemonConnection& connection, DeviceJobResult& result) {
    Progressing now{"waiting for a device", 0, 0, kNowhereYet, 0, 0, GetCurrentTimestamp()};
    for (;;) {
        receive_all(computation, connection, now, result);
        if (result.end == JobEnd::none && is_silent(connection, now))
            end_in_silence(connection, result);
        if (result.end != JobEnd::none) return;
        show(computation, {now.phase, now.done, now.total, now.device, now.epoch, now.loss});
        wait_until_readable(connection.fd(), kLookEveryMilliseconds);
    }
}

// ---- Faults, for tests ----

bool is_of_connection(const char* fault) {
    return std::strncmp(fault, "accept:", 7) == 0;
}

/// Whether the question behind the fault has been answered; an error is of the fault.
Status hear_of_fault(DaemonConnection& connection, bool& heard) {
    for (;;) {
        const Result<std::optional<DaemonEvent>> event = connection.receive();
        if (!event.ok()) return event.status();
        if (!event->has_value()) return {};
        if (const auto* failed = std::get_if<Failed>(&**event)) return failed->status;
        heard = heard || std::holds_alternative<CounterValues>(**event);
    }
}

/// The fault to ask for, or none. What happens to a connection happens to the first one only.
const char* fault_of_try(bool again) {
    const char* fault = injected_fault();
    return again && is_of_connection(fault) ? "" : fault;
}

/// Waits until gputextd knows of it, so that it comes before all that follows.
bool inject_fault(Connection& connection, const char* fault, Failure& failure) {
    bool heard = false;
    bool ok = attempt(failure, [&]() -> Status {
        GPUTEXT_TRY(connection->inject_fault(fault));
        return connection->ask_counters();
    });
    while (ok && !heard) {
        wait_until_readable(connection->fd(), kLookEveryMilliseconds);
        ok = attempt(failure, [&] { return hear_of_fault(*connection, heard); });
    }
    return ok && (!is_of_connection(fault) || connect_to_daemon(connection, failure));
}

bool send_job(Computation& computation, Connection& connection, bool again, Failure& failure) {
    if (!connect_to_daemon(connection, failure)) return false;
    const char* fault = fault_of_try(again);
    if (fault[0] != '\0' && !inject_fault(connection, fault, failure)) return false;
    computation.prepare_for_device();
    return attempt(failure, [&] { return computation.submit(*connection, stop_on_interrupt()); });
}

/// Connects, sends the job, after the fault of gputext.inject_fault, and waits for its end, showing
/// meanwhile how far it is. `connection` becomes the job's; whoever owns it cancels the job by
/// destroying it. `again`: the job was refused before.
DeviceJobResult run_device_job(Computation& computation, Connection& connection, bool again) {
    DeviceJobResult result{};
    const auto begin = Clock::now();
    if (!send_job(computation, connection, again, result.failure)) {
        result.end =
            result.failure.code == ErrorCode::unavailable ? JobEnd::refused : JobEnd::failed;
        return result;
    }
    result.sending = seconds_since(begin);
    wait_for_end(computation, *connection, result);
    return result;
}

// ---- A computation ----

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
    finish_job(run.job.job(), kOnCpu, [&](const Step& step) { show(run.computation, step); });
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

bool has_device_for(const JobSize& size) {
    return device_is_wanted(size) && reach_daemon(Want::device_or_cpu).ready;
}

}  // namespace gputext
