#include "extension/server/daemon_probe.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "extension/base/failure.hpp"
#include "extension/server/shared_state.hpp"

namespace gputext {
namespace {

/// Another gputextd may still listen there, about to end with the supervisor that it had.
bool is_of(const DaemonConnection& connection, pid_t daemon) {
    ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(connection.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           peer.pid == daemon;
}

}  // namespace

void DaemonProbe::open() {
    connection_.reset();
    state_ = State::asking;
}

void DaemonProbe::close() {
    connection_.reset();
    state_ = State::over;
}

DaemonProbe::State DaemonProbe::advance(pid_t daemon) noexcept {
    if (!asking()) return state_;
    Failure ignored;  // it is tried again
    attempt(ignored, [&]() -> Status {
        if (connection_ == nullptr) connect(daemon);
        if (connection_ != nullptr) receive();
        return {};
    });
    return state_;
}

void DaemonProbe::connect(pid_t daemon) {
    auto connection = DaemonConnection::connect(kDaemonSocket);
    if (!connection.ok() || !is_of(**connection, daemon)) return;
    if ((*connection)->ask_devices().ok() && (*connection)->ask_activity().ok())
        connection_ = std::move(*connection);
}

void DaemonProbe::receive() {
    for (;;) {
        Result<std::optional<DaemonEvent>> event = connection_->receive();
        if (!event.ok()) {
            if (connection_->other_protocol()) state_ = State::other_protocol;
            return connection_.reset();
        }
        if (!event->has_value()) return;
        if (auto* list = std::get_if<DeviceList>(&**event)) answer_ = std::move(*list);
        if (const auto* list = std::get_if<ActivityList>(&**event)) {  // the last answer
            jobs_ = list->jobs.size();
            release_ = connection_->release();
            state_ = State::answered;
            return;
        }
    }
}

void DaemonProbe::copy_answer(SharedDaemon& daemon) const {
    strlcpy(daemon.release, release_.c_str(), sizeof daemon.release);
    daemon.devices = std::min(devices(), static_cast<int>(kMaxDevices));
    for (int i = 0; i < daemon.devices; ++i) {
        const DeviceInfo& info = answer_.devices[i];
        strlcpy(daemon.device[i].name, info.name.c_str(), sizeof daemon.device[i].name);
        strlcpy(daemon.device[i].driver, info.driver.c_str(), sizeof daemon.device[i].driver);
        daemon.device[i].memory = info.memory;
    }
}

}  // namespace gputext
