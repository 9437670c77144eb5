// extension/server/daemon.hpp - connects a session to a gputextd that takes jobs

#pragma once

#include "extension/base/postgres.hpp"

#include <memory>

#include "cpp/link/client.hpp"
#include "extension/base/failure.hpp"
#include "extension/server/shared_state.hpp"

namespace gputext {

/// How much a session wants a device.
enum class Want {
    device_or_cpu,  // does not wait for what has failed before, nor look again for devices
    device          // waits, and looks again where there were none
};

/// Whether there is a gputextd to connect to. If not, why: for the counters and for a person.
struct DaemonAccess {
    bool ready;
    pid_t daemon;  // that is ready
    Fallback reason;
    char message[600];
    char hint[200];
    char difference[300];  // ready: how its release is another one than this session's, or nothing
};

/// Starts the supervisor if there is none, and waits until gputextd is ready or is known not to
/// become so: when it was not running about a second, at most kDaemonPatience. Serves interrupts
/// meanwhile. `doubted` is a process that was said to be ready and then did not answer: it is ready
/// when it has answered the supervisor since; if it does not, it is replaced. So is one of another
/// release than this session's, if its program was replaced on disk and it has no jobs; else the
/// session is warned of it once. Devices that were not found are looked for again ever later, and
/// at once after a reload of the configuration.
DaemonAccess reach_daemon(Want want, pid_t doubted = 0);

/// Whether there is a gputextd, with or without devices, that may keep values
/// (resident_values.hpp). Does not wait for it: where none runs, has one started for later
/// statements.
bool value_store_is_ready();

/// Connects to it, without waiting; false with the failure.
bool connect_to_daemon(std::unique_ptr<DaemonConnection>& connection, Failure& failure);

/// Lets the supervisor see whether gputextd answers, and replace it if not.
void doubt_daemon();

/// Lets the server start the supervisor with itself, if this library is being preloaded. Called
/// once, when the library is loaded.
void preload_supervisor();

inline constexpr int kDaemonPatience = 30000;  // milliseconds

}  // namespace gputext
