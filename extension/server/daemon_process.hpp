// extension/server/daemon_process.hpp - gputextd as a child process, and its log

#pragma once

#include <sys/types.h>

#include <cstddef>

#include "extension/server/release.hpp"
#include "extension/server/settings.hpp"

namespace gputext {

/// A gputextd that was started. Plain memory: whoever has it ends it.
struct DaemonProcess {
    pid_t pid = 0;      // 0: there is none
    int log = -1;       // its lines, without blocking
    int lifeline = -1;  // it ends when this is closed
};

/// Runs the gputextd that was installed beside this library, or gputextd-cuda if that is there too,
/// in a session of its own, with default signals, no descriptors but those it needs, the standard
/// error of the server, and the wish to be killed first when memory runs out. It reports its own
/// failure to start on the log, and ends with kCannotRun then. Raises an error when the system
/// gives no process or descriptor.
DaemonProcess start_daemon_process(const DaemonSettings& settings);

inline constexpr int kCannotRun = 127;

/// The program that it would run: nothing while there is none that is executable.
FileIdentity daemon_program();

/// Asks it to end, without waiting for that.
void ask_to_end(DaemonProcess& process);

/// Closes what is left after it has ended.
void forget(DaemonProcess& process);

/// Copies gputextd's log into PostgreSQL's: reads "LEVEL message" lines from a pipe that does not
/// block.
class DaemonLog {
public:
    /// Logs all whole lines that are there; false at the pipe's end.
    bool forward(int descriptor);

    /// For another gputextd.
    void start_over() { used_ = 0, last_warning_[0] = '\0'; }

    /// Its last message of level WARNING, or nothing.
    const char* last_warning() const { return last_warning_; }

private:
    void log_lines();
    void log_line(char* line);

    // gputextd's lines are shorter.
    char buffer_[8192];
    std::size_t used_ = 0;
    char last_warning_[512] = "";
};

}  // namespace gputext
