#include <vector>

#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/outlier_factor_on_device.hpp"

namespace gputext {

Result<std::vector<double>> OutlierFactorOnDevice::on_host(const OutlierParameters& parameters,
                                                           const Vectors& items,
                                                           std::uint64_t memory,
                                                           Execution& execution) {
    return local_outlier_factors(within(parameters, memory), items, execution);
}

template <>
class Job<SubmitOutlierFactor> : public JobOf<SubmitOutlierFactor> {
public:
    explicit Job(const SubmitOutlierFactor& request)
        : JobOf(request), parameters_(request.parameters) {
        parameters_.answer_limit = request.parameters.memory_limit;
    }

    Status read(JobFiles files, Execution& execution) override {
        return items_.map(request_.items, files, execution.stop());
    }
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        return keep(
            device.compute<OutlierFactorOnDevice>(parameters_, items_.vectors(), memory, execution),
            factors_);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning rows", 0);
        return append_all(file, factors_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return ScoresReply{report, static_cast<std::uint32_t>(factors_.size())};
    }

private:
    OutlierParameters parameters_;
    MappedMatrix items_;
    std::vector<double> factors_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitOutlierFactor& request);

}  // namespace gputext
