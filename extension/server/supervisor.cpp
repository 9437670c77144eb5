#include "extension/server/supervisor.hpp"

extern "C" {
#include "libpq/pqsignal.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
}

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "extension/server/daemon_probe.hpp"
#include "extension/server/daemon_process.hpp"
#include "extension/server/restarts.hpp"
#include "extension/server/settings.hpp"
#include "extension/server/shared_state.hpp"

namespace gputext {
namespace {

constexpr int kProbeEvery = 10;               // milliseconds, until it answers
constexpr TimestampTz kTimeToAnswer = 60000;  // milliseconds: a host with many GPUs takes seconds
constexpr TimestampTz kTimeToAnswerAgain = 5000;  // milliseconds, when it has been ready
constexpr TimestampTz kTimeToEnd = 3000;          // milliseconds, before it is killed
constexpr TimestampTz kTimeToDie = 5000;  // milliseconds, when killed; drivers can hold it up
constexpr long kLookForIdleness = 1000;   // milliseconds, when its program was replaced

// All of the supervisor's life is one function's in one process.
DaemonProcess process;
DaemonLog daemon_log;
DaemonProbe probe;
char last_end[512];  // of gputextd by itself: why

// ---- What the sessions see ----

/// Under the lock.
void count_look(SharedDaemon& daemon) {
    if (daemon.phase == DaemonPhase::ready) daemon.looks_in_vain = 0;
    if (daemon.phase != DaemonPhase::no_devices && daemon.phase != DaemonPhase::failed) return;
    daemon.look_again_at =
        TimestampTzPlusMilliseconds(daemon.changed_at, pause_after_looks(++daemon.looks_in_vain));
}

void set_phase(DaemonPhase phase, const char* why = "", bool replaced = false) {
    SharedState* state = shared_state();
    LWLockAcquire(&state->lock, LW_EXCLUSIVE);
    SharedDaemon& daemon = state->daemon;
    // One without devices that is asked again has not looked for them again.
    const bool known =
        phase == DaemonPhase::no_devices && daemon.phase == phase && daemon.daemon == process.pid;
    daemon.phase = phase;
    daemon.daemon = process.pid;
    daemon.doubted = false;
    daemon.look_wanted = false;
    strlcpy(daemon.why, why, sizeof daemon.why);
    daemon.replaced = replaced;
    if (!known) {
        daemon.changed_at = GetCurrentTimestamp();
        count_look(daemon);
    }
    if (phase == DaemonPhase::ready || phase == DaemonPhase::no_devices) probe.copy_answer(daemon);
    LWLockRelease(&state->lock);
    ConditionVariableBroadcast(&state->changed);
}

/// False when there is another supervisor.
bool take_office() {
    SharedState* state = shared_state();
    LWLockAcquire(&state->lock, LW_EXCLUSIVE);
    const bool free = state->daemon.supervisor == 0;
    if (free) {
        state->daemon.supervisor = MyProcPid;
        state->daemon.latch = MyLatch;
    }
    LWLockRelease(&state->lock);
    return free;
}

/// What it leaves in the data directory when it is killed. Safe in a signal handler.
void remove_files() {
    unlink(kDaemonSocket);
    unlink(kDaemonSocketLock);
}

/// Ends it at once. Safe in a signal handler.
void kill_daemon() {
    if (process.pid == 0) return;
    kill(process.pid, SIGKILL);
    remove_files();
}

/// So that it is gone when this process is; not for ever, as a driver may hold it up.
void wait_for_killed_daemon() {
    for (int i = 0; i < 100 && waitpid(process.pid, nullptr, WNOHANG) == 0; ++i) pg_usleep(10000);
}

/// Before this process leaves the shared memory, whatever the reason.
void leave_office(int, Datum) {
    if (process.pid != 0) {
        kill_daemon();
        wait_for_killed_daemon();
        process.pid = 0;
    }
    SharedState* state = shared_state();
    LWLockAcquire(&state->lock, LW_EXCLUSIVE);
    SharedDaemon& daemon = state->daemon;
    daemon.supervisor = 0;
    daemon.latch = nullptr;
    daemon.daemon = 0;
    if (daemon.phase != DaemonPhase::no_devices && daemon.phase != DaemonPhase::failed)
        daemon.phase = DaemonPhase::absent;
    LWLockRelease(&state->lock);
    ConditionVariableBroadcast(&state->changed);
}

// ---- Waiting ----

/// Until something happens or the time is over. Milliseconds; -1: no end.
void wait_for_events(long milliseconds) {
    const bool has_log = process.log >= 0;
    const int events = WL_LATCH_SET | WL_EXIT_ON_PM_DEATH | (has_log ? WL_SOCKET_READABLE : 0) |
                       (milliseconds >= 0 ? WL_TIMEOUT : 0);
    WaitLatchOrSocket(MyLatch, events, process.log, milliseconds, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
    if (has_log && !daemon_log.forward(process.log)) {
        // Its end, which is noticed at once anyway, or the daemon has closed it.
        close(process.log);
        process.log = -1;
    }
}

/// Whether the process has ended; then its status.
bool has_ended(int& status) {
    if (waitpid(process.pid, &status, WNOHANG) != process.pid) return false;
    if (process.log >= 0) daemon_log.forward(process.log);
    probe.close();
    forget(process);
    remove_files();
    return true;
}

long milliseconds_since(TimestampTz begin) {
    return TimestampDifferenceMilliseconds(begin, GetCurrentTimestamp());
}

/// False when it has not ended after this time.
bool ends_within(TimestampTz milliseconds) {
    const TimestampTz begin = GetCurrentTimestamp();
    for (int status; !has_ended(status); wait_for_events(20))
        if (milliseconds_since(begin) > milliseconds) return false;
    return true;
}

/// Ends it, by force after a while. Sessions that come meanwhile are to wait for the next one.
void end_daemon() {
    set_phase(DaemonPhase::starting);
    ask_to_end(process);
    if (ends_within(kTimeToEnd)) return;
    kill_daemon();
    if (ends_within(kTimeToDie)) return;
    ereport(WARNING, (errmsg("gputextd, process %d, was killed but has not ended",
                             static_cast<int>(process.pid))));
    probe.close();
    forget(process);
}

// ---- The decisions ----

enum class Next { start_again, leave };

bool told_to_end() {
    return ShutdownRequestPending;
}

/// Takes in changed settings; true when gputextd has to be started anew for them.
bool settings_changed(const DaemonSettings& used) {
    if (!ConfigReloadPending) return false;
    ConfigReloadPending = false;
    ProcessConfigFile(PGC_SIGHUP);
    return !(daemon_settings() == used);
}

/// Logs it and keeps it for those who ask.
void note_end(int status) {
    if (WIFSIGNALED(status)) {
        snprintf(last_end, sizeof last_end, "it was terminated by signal %d: %s", WTERMSIG(status),
                 pg_strsignal(WTERMSIG(status)));
        ereport(WARNING, (errmsg("gputextd was terminated by signal %d: %s", WTERMSIG(status),
                                 pg_strsignal(WTERMSIG(status))),
                          errhint("Statements that were using it have failed or go on without it. "
                                  "It is started again.")));
        return;
    }
    strlcpy(last_end, daemon_log.last_warning(), sizeof last_end);
    if (last_end[0] == '\0')
        snprintf(last_end, sizeof last_end, "it exited with code %d", WEXITSTATUS(status));
    ereport(LOG, (errmsg("gputextd exited with code %d", WEXITSTATUS(status))));
}

/// What a session says to the supervisor.
bool says(bool SharedDaemon::*word) {
    SharedState* state = shared_state();
    LWLockAcquire(&state->lock, LW_SHARED);
    const bool said = state->daemon.*word;
    LWLockRelease(&state->lock);
    return said;
}

/// What is known of the gputextd that runs.
class Acquaintance {
public:
    Acquaintance() : program_(daemon_program()) {}

    /// Which devices it has, and whether it is busy.
    void ask(TimestampTz patience) {
        probe.open();
        asked_ = GetCurrentTimestamp();
        patience_ = patience;
    }

    /// Asks again when a session doubts that it is the right one, or that it answers at all; and
    /// while it is to be replaced as soon as it has no job.
    void ask_again_if_need_be() {
        if (probe.asking()) return;
        const bool waits = replaced_ && milliseconds_since(asked_) >= kLookForIdleness;
        if (waits || says(&SharedDaemon::doubted)) ask(kTimeToAnswerAgain);
    }

    /// Milliseconds until there is something to do without an event.
    long patience() const {
        if (probe.asking()) return kProbeEvery;
        return replaced_ ? kLookForIdleness : -1;
    }

    enum class Finding {
        none,  // as yet, or that sessions may go on with it
        no_devices,
        other_release,  // one that this supervisor does not understand
        to_be_replaced  // its program on disk is another one, and it has no job
    };

    /// Takes in its answer, if there is one.
    Finding advance() {
        switch (probe.advance(process.pid)) {
            case DaemonProbe::State::asking:
                if (milliseconds_since(asked_) > patience_) {
                    ereport(WARNING, (errmsg("gputextd does not answer and is killed")));
                    probe.close();
                    kill_daemon();
                }
                return Finding::none;
            case DaemonProbe::State::answered:
                probe.close();
                return understand();
            case DaemonProbe::State::other_protocol:
                probe.close();
                return Finding::other_release;
            case DaemonProbe::State::over:
                return Finding::none;
        }
        return Finding::none;
    }

private:
    Finding understand() {
        const bool has_devices = probe.devices() > 0;
        if (!has_devices && resident_memory() == 0) return Finding::no_devices;
        const FileIdentity now = daemon_program();
        replaced_ = now.exists && !(now == program_);
        if (replaced_ && probe.jobs() == 0) return Finding::to_be_replaced;
        if (has_devices)
            set_phase(DaemonPhase::ready, "", replaced_);
        else
            set_phase(DaemonPhase::no_devices, probe.why_none(), replaced_);
        return Finding::none;
    }

    FileIdentity program_;  // when it was started
    TimestampTz asked_ = 0;
    TimestampTz patience_ = 0;
    bool replaced_ = false;
};

/// Ends a gputextd that is of no use. The supervisor leaves, too: the next job starts another one,
/// by the library that is installed then.
void end_useless_daemon(Acquaintance::Finding finding) {
    end_daemon();
    if (finding == Acquaintance::Finding::no_devices)
        set_phase(DaemonPhase::no_devices, probe.why_none());
    if (finding == Acquaintance::Finding::other_release)
        set_phase(DaemonPhase::failed,
                  "the program that is installed is of another release than the server has loaded: "
                  "restart the server");
    if (finding == Acquaintance::Finding::to_be_replaced)
        ereport(LOG, (errmsg("gputextd has ended since another program was installed: the next job "
                             "starts that one")));
}

/// From its start to its end.
Next run_daemon(bool& ended_by_itself) {
    const DaemonSettings settings = daemon_settings();
    daemon_log.start_over();
    Acquaintance daemon;  // before the start: what is installed later is another program
    process = start_daemon_process(settings);
    daemon.ask(kTimeToAnswer);
    set_phase(DaemonPhase::starting);
    for (;;) {
        wait_for_events(daemon.patience());
        if (told_to_end()) {
            end_daemon();
            return Next::leave;
        }
        if (settings_changed(settings) || says(&SharedDaemon::look_wanted)) {
            end_daemon();
            return Next::start_again;
        }
        if (int status; has_ended(status)) {
            note_end(status);
            ended_by_itself = true;
            if (!WIFEXITED(status) || WEXITSTATUS(status) != kCannotRun) return Next::start_again;
            set_phase(DaemonPhase::failed, last_end);
            return Next::leave;
        }
        daemon.ask_again_if_need_be();
        const auto finding = daemon.advance();
        if (finding != Acquaintance::Finding::none) {
            end_useless_daemon(finding);
            return Next::leave;
        }
    }
}

/// Other settings may help: they end the wait. False when it is told to end meanwhile.
bool wait_to_start_again(TimestampTz milliseconds) {
    if (milliseconds == 0) return !told_to_end();
    ereport(LOG,
            (errmsg("gputextd is started again in %ld s", static_cast<long>(milliseconds / 1000))));
    set_phase(DaemonPhase::waiting, last_end);
    const DaemonSettings settings = daemon_settings();
    const TimestampTz begin = GetCurrentTimestamp();
    for (long passed; !told_to_end() && !settings_changed(settings) &&
                      (passed = milliseconds_since(begin)) < milliseconds;)
        wait_for_events(static_cast<long>(milliseconds) - passed);
    return !told_to_end();
}

void supervise() {
    Backoff backoff;
    for (;;) {
        bool ended_by_itself = false;
        const TimestampTz begin = GetCurrentTimestamp();
        if (run_daemon(ended_by_itself) == Next::leave) return;
        if (!ended_by_itself) continue;
        set_phase(DaemonPhase::starting);
        add_to_counter(Counter::restarts);
        if (!wait_to_start_again(backoff.after_an_end(milliseconds_since(begin)))) return;
    }
}

/// An immediate shutdown, or another process of the server has crashed: the shared memory is not to
/// be touched any more.
void quit([[maybe_unused]] SIGNAL_ARGS) {
    kill_daemon();
    _exit(2);
}

void wake([[maybe_unused]] SIGNAL_ARGS) {
    const int error = errno;
    SetLatch(MyLatch);
    errno = error;
}

}  // namespace

BackgroundWorker supervisor_worker() {
    BackgroundWorker worker = {};
    strlcpy(worker.bgw_name, "gputext supervisor", sizeof worker.bgw_name);
    strlcpy(worker.bgw_type, "gputext supervisor", sizeof worker.bgw_type);
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS;
    worker.bgw_start_time = BgWorkerStart_ConsistentState;
    worker.bgw_restart_time = BGW_NEVER_RESTART;
    strlcpy(worker.bgw_library_name, "gputext", sizeof worker.bgw_library_name);
    strlcpy(worker.bgw_function_name, "gputext_supervise", sizeof worker.bgw_function_name);
    return worker;
}

}  // namespace gputext

extern "C" {
PGDLLEXPORT void gputext_supervise(Datum);

void gputext_supervise(Datum) {
    pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    pqsignal(SIGQUIT, gputext::quit);
    pqsignal(SIGCHLD, gputext::wake);
    BackgroundWorkerUnblockSignals();
    if (!gputext::take_office()) proc_exit(0);
    before_shmem_exit(gputext::leave_office, 0);
    gputext::supervise();
    proc_exit(0);
}
}
