#include "extension/server/running_job.hpp"

#include "extension/base/failure.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/settings.hpp"
#include "extension/server/shared_state.hpp"
#include "extension/server/waiting.hpp"

namespace gputext {
namespace {

Step step_of(const Execution& execution, std::int32_t device) {
    return {execution.phase(), execution.done(), execution.total(), device,
            execution.epoch(), execution.loss()};
}

}  // namespace

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

void finish_job(Job& job, std::int32_t device) {
    do {
        show_step(step_of(job.execution(), device));
    } while (!wait_until_readable(job.ready_fd(), kLookEveryMilliseconds));
    attempt_or_raise([&] { return job.wait(); });
}

}  // namespace gputext
