// extension/daemon_probe.hpp - asks a gputextd that was just started for its devices

#pragma once

#include <sys/types.h>

#include <memory>

#include "cpp/daemon_client.hpp"
#include "extension/shared_state.hpp"

namespace gputext {

/// Never blocks, raises no error, lets no exception out.
class DaemonProbe {
public:
    enum class State { over, asking, answered };

    void open();
    void close();
    bool asking() const { return state_ == State::asking; }

    /// One try more to connect to that process, or to receive its answer.
    State advance(pid_t daemon) noexcept;

    // Once it has answered:
    int devices() const { return static_cast<int>(answer_.devices.size()); }
    const char* why_none() const { return answer_.why_none.c_str(); }
    void copy_devices(SharedDaemon& daemon) const;

private:
    void connect(pid_t daemon);
    void receive();

    State state_ = State::over;
    std::unique_ptr<DaemonConnection> connection_;
    DeviceList answer_;
};

}  // namespace gputext
