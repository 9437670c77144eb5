#include "extension/running_job.hpp"

extern "C" {
#include "storage/latch.h"
#include "utils/wait_event.h"
}

#include "extension/failure.hpp"

namespace gputext {
namespace {

void wait_until_ready(Job& job) {
    for (;;) {
        const int events =
            WaitLatchOrSocket(MyLatch, WL_LATCH_SET | WL_SOCKET_READABLE | WL_EXIT_ON_PM_DEATH,
                              job.ready_fd(), -1, PG_WAIT_EXTENSION);
        if ((events & WL_LATCH_SET) != 0) {
            ResetLatch(MyLatch);
            CHECK_FOR_INTERRUPTS();
        }
        if ((events & WL_SOCKET_READABLE) != 0) return;
    }
}

}  // namespace

void finish_job(Job& job) {
    PG_TRY();
    { wait_until_ready(job); }
    PG_CATCH();
    {
        // Its owner is only destroyed later in the abort; the threads need not wait for that.
        job.execution().request_stop();
        PG_RE_THROW();
    }
    PG_END_TRY();
    Failure failure;
    if (!attempt(failure, [&] { return job.wait(); })) raise_failure(failure);
}

}  // namespace gputext
