#include "extension/server/daemon.hpp"

extern "C" {
#include "postmaster/bgworker.h"
#include "storage/latch.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"
}

#include "extension/server/release.hpp"
#include "extension/server/settings.hpp"
#include "extension/server/shared_state.hpp"
#include "extension/server/supervisor.hpp"

namespace gputext {
namespace {

// A supervisor that has not started in this time never will: the postmaster could not fork.
constexpr long kTimeToRegister = 10000;  // milliseconds
// A supervisor that cannot stay, having no process for gputextd for example.
constexpr int kMostRegistrations = 3;
// For the supervisor to see that gputextd has died, or that it answers.
constexpr long kTimeToNotice = 2000;  // milliseconds
// Time for the supervisor to replace a gputextd that does not answer.
constexpr long kTimeToReplace = 20000;  // milliseconds

long milliseconds_since(TimestampTz begin) {
    return TimestampDifferenceMilliseconds(begin, GetCurrentTimestamp());
}

/// Under the lock.
void doubt(SharedDaemon& daemon) {
    if (daemon.doubted || daemon.daemon == 0 || daemon.latch == nullptr) return;
    if (daemon.phase != DaemonPhase::ready && daemon.phase != DaemonPhase::no_devices) return;
    daemon.doubted = true;
    SetLatch(daemon.latch);
}

bool of_this_release(const SharedDaemon& daemon) {
    return strcmp(daemon.release, module_release()) == 0;
}

/// Which of the two is older, as far as the files on disk tell it.
void describe_difference(const SharedDaemon& daemon, DaemonAccess& access) {
    char(&text)[sizeof access.difference] = access.difference;
    if (daemon.replaced)
        snprintf(text, sizeof text,
                 "gputextd (%s) is older than this session's gputext (%s), and is replaced when it "
                 "has no more jobs",
                 daemon.release, module_release());
    else if (module_is_replaced())
        snprintf(
            text, sizeof text,
            "this session's gputext (%s) is older than gputextd (%s): connect anew, or restart "
            "the server where it preloads gputext",
            module_release(), daemon.release);
    else
        snprintf(text, sizeof text,
                 "gputextd (%s) and this session's gputext (%s) were not built from the same "
                 "sources: install both of one build",
                 daemon.release, module_release());
}

DaemonAccess ready(const SharedDaemon& daemon) {
    DaemonAccess access{};
    access.ready = true;
    access.daemon = daemon.daemon;
    if (!of_this_release(daemon)) describe_difference(daemon, access);
    return access;
}

/// Once for each gputextd.
void warn_of_difference(const DaemonAccess& access) {
    static pid_t warned_of = 0;
    if (access.difference[0] == '\0' || warned_of == access.daemon) return;
    warned_of = access.daemon;
    ereport(WARNING, (errmsg("%s", access.difference)));
}

DaemonAccess refused(Fallback reason, const char* message, const char* why, const char* hint) {
    DaemonAccess access{};
    access.reason = reason;
    if (why[0] != '\0')
        snprintf(access.message, sizeof access.message, "%s: %s", message, why);
    else
        strlcpy(access.message, message, sizeof access.message);
    strlcpy(access.hint, hint, sizeof access.hint);
    return access;
}

/// False when the server has no place for the supervisor.
bool register_now(SharedDaemon& daemon) {
    BackgroundWorker worker = supervisor_worker();
    if (!RegisterDynamicBackgroundWorker(&worker, nullptr)) return false;
    daemon.phase = DaemonPhase::requested;
    daemon.changed_at = GetCurrentTimestamp();
    return true;
}

/// Whether the daemon runs and keeps values.
bool keeps_values(const SharedDaemon& daemon) {
    return (daemon.phase == DaemonPhase::ready || daemon.phase == DaemonPhase::no_devices) &&
           daemon.daemon != 0 && of_this_release(daemon);
}

/// Whether there may be devices by now, or a program that can be run, where there were none.
bool look_is_due(SharedDaemon& daemon, TimestampTz now) {
    const bool reloaded = PgReloadTime > daemon.changed_at;
    if (reloaded) daemon.looks_in_vain = 0;
    return reloaded || daemon.look_again_at <= now;
}

/// Whether the postmaster could not start the supervisor that was asked for.
bool is_overdue(const SharedDaemon& daemon) {
    return milliseconds_since(daemon.changed_at) > kTimeToRegister;
}

/// Whether values can be kept only if there is another supervisor.
bool needs_supervisor(SharedDaemon& daemon) {
    switch (daemon.phase) {
        case DaemonPhase::absent:
            return true;
        case DaemonPhase::requested:
            return is_overdue(daemon);
        case DaemonPhase::no_devices:
            // One may have left before there was memory to keep values in.
            return daemon.supervisor == 0;
        case DaemonPhase::failed:
            return daemon.supervisor == 0 && look_is_due(daemon, GetCurrentTimestamp());
        default:
            return false;
    }
}

/// One session's patience with gputextd.
class Approach {
public:
    Approach(Want want, pid_t doubted)
        : want_(want), doubted_(doubted), state_(shared_state()), begin_(GetCurrentTimestamp()) {}

    DaemonAccess run() {
        DaemonAccess access{};
        ConditionVariablePrepareToSleep(&state_->changed);
        while (!decide(access))
            ConditionVariableTimedSleep(&state_->changed, 100, PG_WAIT_EXTENSION);
        ConditionVariableCancelSleep();
        return access;
    }

private:
    /// False to wait.
    bool decide(DaemonAccess& access) {
        LWLockAcquire(&state_->lock, LW_EXCLUSIVE);
        const bool decided = decide_locked(state_->daemon, access);
        LWLockRelease(&state_->lock);
        return decided;
    }

    bool decide_locked(SharedDaemon& daemon, DaemonAccess& access) {
        switch (daemon.phase) {
            case DaemonPhase::ready:
                if (daemon.changed_at > begin_ ||
                    (daemon.daemon != doubted_ && of_this_release(daemon)) ||
                    (daemon.daemon != doubted_ && milliseconds_since(begin_) > kTimeToNotice)) {
                    access = ready(daemon);
                    return true;
                }
                doubt(daemon);
                if (daemon.daemon != doubted_) return false;
                return late(want_ == Want::device ? kTimeToReplace : kTimeToNotice,
                            "gputextd takes no connections", "", access);
            case DaemonPhase::absent:
                return !register_supervisor(daemon, access);
            case DaemonPhase::requested:
                if (is_overdue(daemon)) return !register_supervisor(daemon, access);
                return late(kDaemonPatience, "gputext's supervisor does not start", "", access);
            case DaemonPhase::starting:
                return late(kDaemonPatience, "gputextd does not become ready", "", access);
            case DaemonPhase::waiting:
                if (want_ == Want::device)
                    return late(kDaemonPatience, "gputextd keeps ending", daemon.why, access);
                access = refused(Fallback::not_ready, "gputextd keeps ending", daemon.why, kSeeLog);
                return true;
            case DaemonPhase::no_devices:
                if (look_again(daemon)) return !have_looked(daemon, access);
                access = refused(Fallback::no_device, "there is no GPU to use", daemon.why, "");
                add_next_look(daemon, access);
                return true;
            case DaemonPhase::failed:
                if (look_again(daemon)) return !register_supervisor(daemon, access);
                access = refused(Fallback::not_ready, "gputextd cannot be started", daemon.why, "");
                add_next_look(daemon, access);
                return true;
        }
        pg_unreachable();
    }

    /// What was found before this approach may have changed since.
    bool look_again(SharedDaemon& daemon) const {
        return want_ == Want::device && daemon.changed_at < begin_ && look_is_due(daemon, begin_);
    }

    /// Tells who wanted a look when there will be one.
    void add_next_look(const SharedDaemon& daemon, DaemonAccess& access) const {
        if (want_ != Want::device || daemon.changed_at >= begin_) return;
        const std::size_t used = strlen(access.message);
        snprintf(access.message + used, sizeof access.message - used,
                 " (looked for %ld s ago, and again in %ld s or after a reload)",
                 milliseconds_since(daemon.changed_at) / 1000,
                 TimestampDifferenceMilliseconds(begin_, daemon.look_again_at) / 1000 + 1);
    }

    bool late(long patience, const char* message, const char* why, DaemonAccess& access) const {
        if (milliseconds_since(begin_) < patience) return false;
        access = refused(Fallback::not_ready, message, why, kSeeLog);
        return true;
    }

    /// False, with the reason, when nobody can look for devices.
    bool have_looked(SharedDaemon& daemon, DaemonAccess& access) {
        if (daemon.supervisor == 0) return register_supervisor(daemon, access);
        daemon.look_wanted = true;
        daemon.phase = DaemonPhase::starting;
        daemon.changed_at = GetCurrentTimestamp();
        SetLatch(daemon.latch);
        return true;
    }

    /// False, with the reason, when the server has no place for it, or it does not stay.
    bool register_supervisor(SharedDaemon& daemon, DaemonAccess& access) {
        if (++registrations_ > kMostRegistrations) {
            access = refused(Fallback::not_ready, "gputext's supervisor keeps ending", "", kSeeLog);
            return false;
        }
        if (!register_now(daemon)) {
            access = refused(Fallback::no_worker_slot,
                             "no background worker is free for gputext's supervisor", "",
                             "Raise max_worker_processes, or preload gputext by "
                             "shared_preload_libraries, and restart the server.");
            return false;
        }
        return true;
    }

    static constexpr char kSeeLog[] = "The server's log has gputextd's messages.";

    Want want_;
    pid_t doubted_;
    SharedState* state_;
    TimestampTz begin_;
    int registrations_ = 0;
};

}  // namespace

DaemonAccess reach_daemon(Want want, pid_t doubted) {
    const DaemonAccess access = Approach(want, doubted).run();
    warn_of_difference(access);
    return access;
}

bool connect_to_daemon(std::unique_ptr<DaemonConnection>& connection, Failure& failure) {
    return attempt(failure, [&]() -> Status {
        auto made = DaemonConnection::connect(kDaemonSocket);
        if (!made.ok()) return made.status();
        connection = std::move(*made);
        return {};
    });
}

bool value_store_is_ready() {
    if (resident_memory() == 0) return false;
    SharedState* state = shared_state();
    LWLockAcquire(&state->lock, LW_EXCLUSIVE);
    SharedDaemon& daemon = state->daemon;
    const bool ready = keeps_values(daemon);
    if (needs_supervisor(daemon)) register_now(daemon);
    LWLockRelease(&state->lock);
    return ready;
}

void doubt_daemon() {
    SharedState* state = shared_state();
    LWLockAcquire(&state->lock, LW_EXCLUSIVE);
    doubt(state->daemon);
    LWLockRelease(&state->lock);
}

void preload_supervisor() {
    if (!process_shared_preload_libraries_in_progress) return;
    BackgroundWorker worker = supervisor_worker();
    RegisterBackgroundWorker(&worker);
}

}  // namespace gputext
