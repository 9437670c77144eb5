#include <vector>

#include "cpp/daemon/cosine_similarity_on_device.hpp"
#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/knn/cosine_similarity.hpp"

namespace gputext {

Result<std::vector<double>> CosineSimilarityOnDevice::on_host(const Vectors& query,
                                                              const Vectors& items, std::uint64_t,
                                                              Execution& execution) {
    return cosine_similarities(query, items, best_simd(), execution);
}

template <>
class Job<SubmitCosineSimilarity> : public JobOf<SubmitCosineSimilarity> {
public:
    using JobOf::JobOf;

    Status read(JobFiles files, Execution& execution) override {
        GPUTEXT_TRY(query_.map(request_.query, files, execution.stop()));
        return items_.map(request_.items, files, execution.stop());
    }
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        return keep(device.compute<CosineSimilarityOnDevice>(query_.vectors(), items_.vectors(),
                                                             memory, execution),
                    similarities_);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning rows", 0);
        return append_all(file, similarities_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return ScoresReply{report, static_cast<std::uint32_t>(similarities_.size())};
    }

private:
    MappedMatrix query_, items_;
    std::vector<double> similarities_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitCosineSimilarity& request);

}  // namespace gputext
