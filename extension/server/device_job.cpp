#include "extension/server/device_job.hpp"

extern "C" {
#include "utils/timestamp.h"
}

#include "cpp/base/byte_text.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/daemon.hpp"
#include "extension/server/settings.hpp"
#include "extension/server/waiting.hpp"

namespace gputext {
namespace {

using Connection = std::unique_ptr<DaemonConnection>;

// gputextd greets at once, and speaks some times a second while a job waits or runs.
constexpr long kTimeToGreet = 5000;   // milliseconds
constexpr long kMostSilence = 10000;  // milliseconds

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
    GPUTEXT_TRY(computation.take(event, stop_on_interrupt()));
    result.end = JobEnd::answered;
    result.seconds = report.seconds;
    result.retries = report.retries;
    result.phases.set(report.phases);
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
        show_step({now.phase, now.done, now.total, now.device, now.epoch, now.loss});
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

}  // namespace

DeviceJobResult run_device_job(Computation& computation, Connection& connection, bool again) {
    DeviceJobResult result{};
    if (send_job(computation, connection, again, result.failure))
        wait_for_end(computation, *connection, result);
    else
        result.end =
            result.failure.code == ErrorCode::unavailable ? JobEnd::refused : JobEnd::failed;
    return result;
}

}  // namespace gputext
