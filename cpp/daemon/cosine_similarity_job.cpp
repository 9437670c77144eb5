#include <vector>

#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/knn/cosine_similarity.hpp"

namespace gputext {

Result<std::vector<double>> CosineSimilarityOnDevice::on_host(const Vectors& query,
                                                              const Vectors& items, std::uint64_t,
                                                              Execution& execution) {
    return cosine_similarities(query, items, best_simd(), execution);
}

template <>
class Job<SubmitCosineSimilarity> : public ScoresJob<SubmitCosineSimilarity> {
public:
    using ScoresJob::ScoresJob;

    Status read(JobFiles files, Execution& execution) override {
        GPUTEXT_TRY(query_.map(request_.query, files, execution.stop()));
        return items_.map(request_.items, files, execution.stop());
    }
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        return take_answer(device.compute<CosineSimilarityOnDevice>(
                               query_.vectors(), items_.vectors(), memory, execution),
                           scores_);
    }

private:
    MappedMatrix query_, items_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitCosineSimilarity& request);

}  // namespace gputext
