// cpp/base/job.hpp - runs an operator on its own threads while the calling thread does other work

#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// Runs `work` on a new thread. Whoever started it waits on `ready_fd` beside its other events and
/// then calls wait(). Destroying a job stops it first, which takes as long as the longest step
/// between two looks at the stop request (milliseconds).
class Job {
public:
    using Work = std::function<Status(Execution&)>;

    /// Null when the system gives no file descriptor, no thread or no memory.
    static std::unique_ptr<Job> start(unsigned threads, Work work);
    ~Job();
    Job(const Job&) = delete;
    Job& operator=(const Job&) = delete;

    /// Becomes readable when the work has ended.
    int ready_fd() const { return ready_fd_; }
    /// Progress, and the stop request.
    Execution& execution() { return execution_; }
    /// Waits for the end and returns what the work returned.
    const Status& wait();

private:
    Job(unsigned threads, int ready_fd) : execution_(threads), ready_fd_(ready_fd) {}

    Execution execution_;
    int ready_fd_;
    Status status_;
    std::thread thread_;
};

}  // namespace gputext
