// extension/server/running_job.hpp - lets a session start a job of cpp/ on the CPU, and wait for it

#pragma once

#include "extension/base/postgres.hpp"

#include <memory>

#include "cpp/base/job.hpp"

namespace gputext {

/// A job, and the threads of all sessions' common number that it has.
class SessionJob {
public:
    SessionJob() = default;
    ~SessionJob() { end(); }
    SessionJob(const SessionJob&) = delete;
    SessionJob& operator=(const SessionJob&) = delete;

    /// Starts the work on a thread of its own, with helpers as far as other sessions have left
    /// them. Raises an error when there is no thread.
    void start(const Job::Work& work);
    Job& job() { return *job_; }
    /// Ends the job, also one that still runs, which is stopped and waited for.
    void end();

private:
    std::unique_ptr<Job> job_;
    unsigned helpers_ = 0;
};

/// Waits for the job's end, showing meanwhile how far it is, and on which device: kOnCpu, or
/// kNowhereYet for what precedes the operator's own computation. Raises the job's failure as an
/// error.
void finish_job(Job& job, std::int32_t device);

}  // namespace gputext
