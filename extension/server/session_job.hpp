// extension/server/session_job.hpp - lets a session compute on threads of its own, and wait for
// them and for gputextd without being deaf to interrupts

#pragma once

#include "extension/base/postgres.hpp"

#include <memory>
#include <type_traits>

#include "cpp/base/execution.hpp"
#include "cpp/base/job.hpp"
#include "cpp/base/status.hpp"
#include "extension/server/activity.hpp"

namespace gputext {

/// Waits until there is something to read, at most so many milliseconds; whether there is.
bool wait_until_readable(int descriptor, long milliseconds);

/// How often who waits looks how far it is.
inline constexpr long kLookEveryMilliseconds = 100;

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

Step step_of(const Execution& execution, std::int32_t device);
/// Of a job whose ready_fd() is readable: raises its failure as an error.
void take_end_of(Job& job);

/// Waits for the job's end, calling show(Step) meanwhile with how far it is, and on which device:
/// kOnCpu, or kNowhereYet for what precedes the operator's own computation. Raises the job's
/// failure as an error.
template <class Show>
void finish_job(Job& job, std::int32_t device, const Show& show) {
    do {
        show(step_of(job.execution(), device));
    } while (!wait_until_readable(job.ready_fd(), kLookEveryMilliseconds));
    take_end_of(job);
}

using ThreadedFunction = Status (*)(const void* work, Execution& execution);
void run_threaded(ThreadedFunction function, const void* work);

/// Calls work(execution) on a thread of its own, with as many threads as the session may compute
/// on, and waits for it, showing meanwhile how far it is. It calls nothing of PostgreSQL. Raises
/// its failure as an error; after a cancel, nothing runs any more when that is raised.
template <class Work>
void run_threaded(const Work& work) {
    static_assert(std::is_trivially_destructible_v<Work>, "an error jumps over its destructor");
    run_threaded([](const void* given,
                    Execution& execution) { return (*static_cast<const Work*>(given))(execution); },
                 &work);
}

}  // namespace gputext
