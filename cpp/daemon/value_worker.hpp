// cpp/daemon/value_worker.hpp - thread of gputextd that answers requests about resident values

#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/daemon/background_release.hpp"
#include "cpp/daemon/fault.hpp"
#include "cpp/link/message_socket.hpp"
#include "cpp/resident/resident_values.hpp"

namespace gputext {

/// A request on its way to a reply. Written by the server before it is handed over, then by the
/// worker alone until it is handed back; the execution may be used meanwhile.
struct ValueTask {
    ValueTask(unsigned threads, Message asked) : message(std::move(asked)), execution(threads) {}

    const Message message;
    std::vector<FileDescriptor> files;
    std::vector<Fault> faults;  // that the message suffers
    std::uint64_t connection = 0;
    std::shared_ptr<ValueRequest> request;  // the connection's

    Execution execution;
    Packet reply;  // to send, also for an error; no bytes at all: none
};

/// Whether a message is for this thread.
bool asks_for_values(const Message& message);
/// Its type.
std::uint16_t type_of(const Message& message);
/// Whether its task suffers the fault.
bool suffers(const Message& message, const Fault& fault);

/// The thread and the store that it alone uses, with the exception of the chunks. Tasks are done
/// one after the other in the order of their submission: each takes milliseconds. A copy of
/// gigabytes, on so many threads as the task has, takes tenths of a second; tasks that need its
/// bytes wait for it, and with them those behind them. What a task leaves to be done behind its
/// reply is done before the next one.
class ValueWorker {
public:
    /// Called on the thread when a task is done.
    using Ended = std::function<void(std::shared_ptr<ValueTask>)>;

    /// Throws std::system_error when the system gives no thread.
    ValueWorker(ResidentLimits limits, std::shared_ptr<ResidentRanges> ranges, Ended ended);
    /// Stops and waits for the thread.
    ~ValueWorker();
    ValueWorker(const ValueWorker&) = delete;
    ValueWorker& operator=(const ValueWorker&) = delete;

    /// The chunks that jobs may name. For all threads.
    const ResidentChunks& chunks() const { return *chunks_; }

    void submit(std::shared_ptr<ValueTask> task);
    /// True when the task was still waiting: it is forgotten then. Else it ends at its next look at
    /// the stop request.
    bool cancel(const std::shared_ptr<ValueTask>& task);

    /// Stops all tasks; true when the thread has ended within this time.
    bool stop(std::chrono::milliseconds patience);

private:
    void work();

    Ended ended_;
    ResidentValues values_;
    const std::shared_ptr<ResidentChunks> chunks_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<ValueTask>> waiting_;
    std::shared_ptr<ValueTask> running_;
    bool stopping_ = false;
    bool ended_all_ = false;
    BackgroundRelease release_;
    std::thread thread_;  // last: it uses what is above
};

/// Does one task, and makes its reply. Never throws.
void run_task(ValueTask& task, ResidentValues& values) noexcept;

}  // namespace gputext
