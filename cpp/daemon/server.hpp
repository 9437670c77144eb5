// cpp/daemon/server.hpp - server of gputextd: connections, jobs, devices
//
// One thread runs an event loop over all sockets: connections are many and mostly wait, their
// messages are small, and a closed socket is seen at once whatever the devices do. The work is done
// by one thread a device (cpp/daemon/device_workers.hpp), which also maps and checks a job's files,
// since that takes as long as the files are large; when the job's reply has been sent, a thread of
// its own unmaps and closes them (cpp/daemon/background_release.hpp). Requests about values that
// are kept are answered by one more thread (cpp/daemon/value_worker.hpp).

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cpp/base/resident_ranges.hpp"
#include "cpp/base/status.hpp"
#include "cpp/daemon/device.hpp"

namespace gputext {

enum class LogLevel { debug, log, warning };

struct DaemonOptions {
    std::string socket_path;
    std::string release;  // told to clients
    std::vector<std::unique_ptr<Device>> devices;
    std::string why_no_devices;         // a sentence when there are none
    std::uint64_t memory_limit = 0;     // bytes of each device; 0 for all that is free
    unsigned host_threads = 1;          // that a job may use
    std::uint64_t resident_memory = 0;  // bytes of resident values; 0: none
    std::shared_ptr<ResidentRanges> resident_ranges;  // told to devices, which may be null
    bool allow_faults = false;
    /// Called on the event loop's thread.
    std::function<void(LogLevel, const std::string&)> log = [](LogLevel, const std::string&) {};
};

enum class DaemonEnd {
    told,          // one of the descriptors asked for it
    device_lost,   // a new process is needed to use a device again
    out_of_memory  // for the server itself; clients see their connections closed
};

class DaemonServer {
public:
    /// Listens; connections are accepted, and wait. Errors as of ListeningSocket, out_of_memory.
    static Result<std::unique_ptr<DaemonServer>> start(DaemonOptions options);
    /// Waits for these threads, which may take for ever when one hangs.
    ~DaemonServer();
    DaemonServer(const DaemonServer&) = delete;
    DaemonServer& operator=(const DaemonServer&) = delete;

    /// Serves until one of these descriptors is readable or closed at its other end, or devices are
    /// lost: all of them, or some and there is no job any more, since the others go on. By then all
    /// clients have received an answer or an error, and the socket is closed.
    DaemonEnd run(std::span<const int> told_to_end);

    /// Stops the devices' threads and the one of resident values; false when one of them has not
    /// ended after this time: then the process can only end by _exit.
    bool stop_devices(unsigned milliseconds);

private:
    class Loop;
    explicit DaemonServer(std::unique_ptr<Loop> loop);

    std::unique_ptr<Loop> loop_;
};

}  // namespace gputext
