#include "extension/server/running_job.hpp"

#include "extension/base/failure.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/waiting.hpp"

namespace gputext {
namespace {

Step step_of(const Execution& execution) {
    return {execution.phase(), execution.done(), execution.total(), kOnCpu,
            execution.epoch(), execution.loss()};
}

}  // namespace

void finish_job(Job& job) {
    do {
        show_step(step_of(job.execution()));
    } while (!wait_until_readable(job.ready_fd(), kLookEveryMilliseconds));
    attempt_or_raise([&] { return job.wait(); });
}

}  // namespace gputext
