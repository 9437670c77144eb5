// extension/running_job.hpp - lets a session wait for a job of cpp/ and stay interruptible

#pragma once

#include "cpp/job.hpp"
#include "extension/postgres.hpp"

namespace gputext {

/// Waits for the job's end, serving interrupts meanwhile; raises the job's failure as an error.
/// When the session is cancelled the job is told to stop at once; whoever owns it destroys it.
void finish_job(Job& job);

}  // namespace gputext
