// extension/server/daemon_log.hpp - copies gputextd's log lines into PostgreSQL's log

#pragma once

#include <cstddef>

namespace gputext {

/// Reads "LEVEL message" lines, as gputextd writes them, from a pipe that does not block.
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
