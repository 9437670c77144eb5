// extension/server/device_job.hpp - runs one computation as a job of gputextd

#pragma once

#include "extension/base/postgres.hpp"

#include <memory>

#include "extension/base/failure.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/time_split.hpp"

namespace gputext {

enum class JobEnd {
    none,  // so far
    answered,
    refused,  // gputextd did not look at the job, or ends for a reason that is not the job
    failed
};

struct DeviceJobResult {
    JobEnd end;
    Failure failure;        // unless answered
    double seconds;         // on the device, when answered
    std::uint32_t retries;  // the same
    PhaseText phases;       // and bytes that were copied to devices; the same
};

/// Connects, sends the job, after the fault of gputext.inject_fault, and waits for its end, showing
/// meanwhile how far it is. `connection` becomes the job's; whoever owns it cancels the job by
/// destroying it. `again`: the job was refused before.
DeviceJobResult run_device_job(Computation& computation,
                               std::unique_ptr<DaemonConnection>& connection, bool again);

}  // namespace gputext
