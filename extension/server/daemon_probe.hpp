// extension/server/daemon_probe.hpp - asks a running gputextd for its release, its devices and its
// jobs

#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "cpp/link/client.hpp"
#include "extension/server/shared_state.hpp"

namespace gputext {

/// Never blocks, raises no error, lets no exception out.
class DaemonProbe {
public:
    enum class State {
        over,
        asking,
        answered,
        other_protocol  // it is of a release that cannot be understood
    };

    void open();
    void close();
    bool asking() const { return state_ == State::asking; }

    /// While it asks: one try more to connect to that process, or to receive its answer.
    State advance(pid_t daemon) noexcept;

    // Once it has answered:
    int devices() const { return static_cast<int>(answer_.devices.size()); }
    const char* why_none() const { return answer_.why_none.c_str(); }
    std::size_t jobs() const { return jobs_; }  // that wait or run
    void copy_answer(SharedDaemon& daemon) const;

private:
    void connect(pid_t daemon);
    void receive();

    State state_ = State::over;
    std::unique_ptr<DaemonConnection> connection_;
    std::string release_;
    DeviceList answer_;
    std::size_t jobs_ = 0;
};

}  // namespace gputext
