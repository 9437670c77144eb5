// extension/server/computation.hpp - what an operator computes: its input, how it is computed on
// the CPU, and the job that it is for a device; and what runs it, the same for all operators: the
// choice, the wait, what other sessions see of it, the counters, and the CPU where a device fails

#pragma once

#include "extension/base/postgres.hpp"

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/link/client.hpp"
#include "cpp/link/device_choice.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/time_split.hpp"

namespace gputext {

/// Only prepare_for_cpu() and prepare_for_device() call PostgreSQL, and may raise an error.
class Computation {
public:
    virtual ~Computation() = default;

    virtual JobSize size() const = 0;

    /// Makes the input readable for compute().
    virtual void prepare_for_cpu() {}
    /// On the CPU. Called on a thread of its own.
    virtual Status compute(Execution& execution) = 0;
    /// Told now and then how far it is, wherever it is computed, besides what other sessions see.
    virtual void show([[maybe_unused]] const Step& step) {}

    // On a device; compute() may still follow.

    /// Whether there is a job to send, wherever gputext.device says to compute it.
    virtual bool has_device_job() const { return true; }
    /// Makes the input readable for another process.
    virtual void prepare_for_device() = 0;
    /// Sends the job.
    virtual Status submit(DaemonConnection& connection, Stop stop) = 0;
    /// Takes in the event that answers the job.
    virtual Status take(const DaemonEvent& answer, Stop stop) = 0;
    /// Whether the computation goes on by itself after a job that failed so: neither the CPU takes
    /// over then, nor is it an error.
    virtual bool copes_with([[maybe_unused]] ErrorCode failure) { return false; }
};

/// A computation that takes less time than to send its input to a device.
class HostComputation : public Computation {
public:
    bool has_device_job() const final { return false; }
    void prepare_for_device() final {}
    Status submit(DaemonConnection&, Stop) final { return {}; }
    Status take(const DaemonEvent&, Stop) final { return {}; }
};

/// Computes it where gputext.device says, and returns when that is done. Raises an error when it
/// cannot be done there. The context is to end before the computation does.
void run_computation(Computation& computation, TimeSplit& times, MemoryContext context);

/// Whether a computation of this size would run on a device now. Waits for gputextd as
/// reach_daemon() does.
bool has_device_for(const JobSize& size);

}  // namespace gputext
