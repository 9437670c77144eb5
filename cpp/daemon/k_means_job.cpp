#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"

namespace gputext {

Result<KMeans> KMeansOnDevice::on_host(const KMeansParameters& parameters, const Vectors& items,
                                       std::uint64_t, Execution& execution) {
    return k_means(parameters, items, execution);
}

template <>
class Job<SubmitKMeans> : public JobOf<SubmitKMeans> {
public:
    using JobOf::JobOf;

    Status read(JobFiles files, Execution& execution) override {
        return items_.map(request_.items, files, execution.stop());
    }
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        return take_answer(device.compute<KMeansOnDevice>(request_.parameters, items_.vectors(),
                                                          memory, execution),
                           answer_);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning rows", 0);
        GPUTEXT_TRY(append_all(file, answer_.distances, execution.stop()));
        GPUTEXT_TRY(append_all(file, answer_.sizes, execution.stop()));
        GPUTEXT_TRY(append_all(file, answer_.clusters, execution.stop()));
        GPUTEXT_TRY(append_all(file, answer_.centroids, execution.stop()));
        return {};
    }
    Message reply(const JobReport& report) const override {
        return KMeansReply{report,
                           request_.items.rows,
                           answer_.sizes.size(),
                           answer_.dimensions,
                           answer_.iterations,
                           answer_.converged,
                           answer_.inertia,
                           answer_.rescored};
    }

private:
    MappedMatrix items_;
    KMeans answer_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitKMeans& request);

}  // namespace gputext
