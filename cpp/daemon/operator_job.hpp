// cpp/daemon/operator_job.hpp - interface of gputextd's jobs, one class for each operator
//
// A job goes from the request's files to the reply's file. What is the same for all, the device,
// its memory, faults, retries, errors, is in cpp/daemon/device_workers.hpp.

#pragma once

#include <cstdint>
#include <memory>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/daemon/device.hpp"
#include "cpp/daemon/job_files.hpp"
#include "cpp/link/memory_file.hpp"
#include "cpp/link/protocol.hpp"

namespace gputext {

/// Used by one thread at a time, but for run(), not always the same; the functions in this order.
class OperatorJob {
public:
    virtual ~OperatorJob() = default;

    /// Name of the request's operation; may be called at any time and from any thread.
    virtual const char* operation() const = 0;
    virtual std::uint16_t request_type() const = 0;
    virtual const JobLimits& limits() const = 0;
    virtual std::uint64_t rows() const = 0;
    virtual std::uint64_t bytes() const = 0;

    /// Maps and checks the request's files, as many as descriptors_of() says.
    virtual Status read(JobFiles files, Execution& execution) = 0;
    /// What run() needs besides; returns in how many parts it is worth to be done, at most
    /// `devices`.
    virtual Result<std::size_t> prepare([[maybe_unused]] std::size_t devices,
                                        [[maybe_unused]] Execution& execution) {
        return 1;
    }
    /// Computes a part of the answer in so much memory of the device. May be called again for a
    /// part when that memory has not sufficed, and on another device when this one has failed,
    /// which gives the same bits. Different parts may run on different threads at once.
    virtual Status run(std::size_t part, Device& device, std::uint64_t memory,
                       Execution& execution) = 0;
    /// In how many parts the job goes on, by what all parts have computed: run() is called for each
    /// of these anew. 0 when there is nothing left to compute.
    virtual Result<std::size_t> next_round([[maybe_unused]] Execution& execution) { return 0; }
    /// Makes the answer of its parts.
    virtual Status merge([[maybe_unused]] Execution& execution) { return {}; }
    /// Appends the answer to the reply's file.
    virtual Status write(MemoryFile& file, Execution& execution) = 0;
    /// Whether the answer has something that this device, of which run() has been ok, computed.
    virtual bool has_work_of([[maybe_unused]] const Device& device) const { return true; }
    /// The reply's message.
    virtual Message reply(const JobReport& report) const = 0;
};

/// The job of one operator; cpp/daemon/job_of.hpp has what a new one needs.
template <class Submit>
std::unique_ptr<OperatorJob> new_job(const Submit& request);

}  // namespace gputext
