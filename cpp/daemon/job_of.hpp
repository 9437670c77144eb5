// cpp/daemon/job_of.hpp - what the job of an operator begins with
//
// An operator's job is the class Job<Submit> of its message, in a file of its own:
//
//     template <>
//     class Job<SubmitKnn> : public JobOf<SubmitKnn> { ... };
//
//     template std::unique_ptr<OperatorJob> new_job(const SubmitKnn& request);

#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/daemon/operator_job.hpp"

namespace gputext {

/// What the message says of a job.
template <class Submit>
class JobOf : public OperatorJob {
public:
    explicit JobOf(const Submit& request) : request_(request) {}

    const char* operation() const override { return Submit::operation; }
    std::uint16_t request_type() const override { return Submit::type; }
    const JobLimits& limits() const override { return request_.limits; }
    std::uint64_t rows() const override { return request_.rows(); }
    std::uint64_t bytes() const override { return request_.bytes(); }

protected:
    const Submit request_;
};

/// Moves what a device has computed to a job's answer.
template <class Answer>
Status take_answer(Result<Answer> found, Answer& answer) {
    if (!found.ok()) return found.status();
    answer = std::move(*found);
    return {};
}

/// Parameters for the host's threads, which may take no more memory than the device.
template <class Parameters>
Parameters within(Parameters parameters, std::uint64_t memory) {
    parameters.memory_limit = std::min<std::uint64_t>(parameters.memory_limit, memory);
    return parameters;
}

/// A job whose answer is a number for each row.
template <class Submit>
class ScoresJob : public JobOf<Submit> {
public:
    using JobOf<Submit>::JobOf;

    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning rows", 0);
        return append_all(file, scores_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return ScoresReply{report, static_cast<std::uint32_t>(scores_.size())};
    }

protected:
    std::vector<double> scores_;
};

template <class Submit>
class Job;

template <class Submit>
std::unique_ptr<OperatorJob> new_job(const Submit& request) {
    return std::make_unique<Job<Submit>>(request);
}

}  // namespace gputext
