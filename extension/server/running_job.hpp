// extension/server/running_job.hpp - lets a session wait for a job of cpp/ on the CPU

#pragma once

#include "cpp/base/job.hpp"
#include "extension/base/postgres.hpp"

namespace gputext {

/// Waits for the job's end, showing meanwhile how far it is; raises the job's failure as an error.
void finish_job(Job& job);

}  // namespace gputext
