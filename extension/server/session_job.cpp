#include "extension/server/session_job.hpp"

extern "C" {
#include "storage/ipc.h"
#include "storage/latch.h"
#include "utils/wait_event.h"
}

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/settings.hpp"
#include "extension/server/shared_state.hpp"

namespace gputext {

bool wait_until_readable(int descriptor, long milliseconds) {
    const int events = WaitLatchOrSocket(
        MyLatch, WL_LATCH_SET | WL_SOCKET_READABLE | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, descriptor,
        milliseconds, PG_WAIT_EXTENSION);
    if ((events & WL_LATCH_SET) != 0) ResetLatch(MyLatch);
    CHECK_FOR_INTERRUPTS();
    return (events & WL_SOCKET_READABLE) != 0;
}

Step step_of(const Execution& execution, std::int32_t device) {
    return {execution.phase(), execution.done(), execution.total(), device,
            execution.epoch(), execution.loss()};
}

void SessionJob::start(const Job::Work& work) {
    const unsigned wanted = cpu_threads();
    helpers_ = take_helper_threads(wanted - 1, max_helper_threads());
    if (helpers_ + 1 < wanted)
        ereport(DEBUG1, (errmsg("computing on %u of %u threads", helpers_ + 1, wanted),
                         errdetail("Other sessions compute on the rest of "
                                   "gputext.max_helper_threads.")));
    attempt_or_raise([&]() -> Status {
        job_ = Job::start(helpers_ + 1, work);
        if (job_ == nullptr)
            return {ErrorCode::out_of_memory, "could not start a thread",
                    "The system's limits on threads and open files are the usual reasons."};
        return {};
    });
}

void SessionJob::end() {
    job_.reset();
    give_helper_threads_back(helpers_);
    helpers_ = 0;
}

void take_end_of(Job& job) {
    attempt_or_raise([&] { return job.wait(); });
}

// ---- Functions on threads ----

namespace {

/// What is to end before the caller's work goes.
struct ThreadedRun {
    ThreadedRun(ThreadedFunction function, const void* given)
        : work([function, given](Execution& execution) { return function(given, execution); }) {}

    Job::Work work;
    SessionJob job;
};

/// After an error, or when the session ends. Nothing computes any more when it returns.
void abandon(int, Datum argument) {
    reinterpret_cast<ThreadedRun*>(DatumGetPointer(argument))->job.end();
}

}  // namespace

void run_threaded(ThreadedFunction function, const void* work) {
    auto* const run = make_owned<ThreadedRun>(CurrentMemoryContext, function, work);
    PG_ENSURE_ERROR_CLEANUP(abandon, PointerGetDatum(run));
    {
        run->job.start(run->work);
        finish_job(run->job.job(), kNowhereYet, show_step);
        run->job.end();
    }
    PG_END_ENSURE_ERROR_CLEANUP(abandon, PointerGetDatum(run));
}

}  // namespace gputext
