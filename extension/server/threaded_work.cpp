#include "extension/server/threaded_work.hpp"

extern "C" {
#include "storage/ipc.h"
}

#include "extension/base/owned.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/running_job.hpp"

namespace gputext {
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
        finish_job(run->job.job(), kNowhereYet);
        run->job.end();
    }
    PG_END_ENSURE_ERROR_CLEANUP(abandon, PointerGetDatum(run));
}

}  // namespace gputext
