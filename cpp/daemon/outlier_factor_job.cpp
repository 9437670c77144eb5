#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/shared_knn.hpp"
#include "cpp/knn/outlier_factor.hpp"

namespace gputext {

/// Devices find the neighbors; before and after that the host computes.
template <>
class Job<SubmitOutlierFactor> : public ScoresJob<SubmitOutlierFactor> {
public:
    explicit Job(const SubmitOutlierFactor& request)
        : ScoresJob(request), parameters_(request.parameters) {
        parameters_.answer_limit = request.parameters.memory_limit;
    }

    Status read(JobFiles files, Execution& execution) override {
        return items_.map(request_.items, files, execution.stop());
    }
    Result<std::size_t> prepare(std::size_t devices, Execution& execution) override {
        GPUTEXT_TRY(search_.set(parameters_, items_.vectors(), execution));
        return shared_.prepare(search_.parameters(), search_.rows(), search_.rows(), search_.keys(),
                               devices, execution);
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        return shared_.run(part, device, memory, execution);
    }
    Status merge(Execution& execution) override {
        GPUTEXT_TRY(shared_.merge(execution));
        return take_answer(search_.factors(shared_.answers(), execution), scores_);
    }

private:
    OutlierParameters parameters_;
    MappedMatrix items_;
    OutlierSearch search_;
    SharedKnn shared_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitOutlierFactor& request);

}  // namespace gputext
