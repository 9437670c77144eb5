#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/knn_on_device.hpp"

namespace gputext {

Result<Neighbours> KnnOnDevice::on_host(const KnnParameters& parameters, const Vectors& queries,
                                        const Vectors& items, const RowKeys& keys,
                                        std::uint64_t memory, Execution& execution) {
    GPUTEXT_TRY(await_elements(items, execution.stop()));
    return knn(within(parameters, memory), queries, items, keys, execution);
}

template <>
class Job<SubmitKnn> : public JobOf<SubmitKnn> {
public:
    explicit Job(const SubmitKnn& request) : JobOf(request), parameters_(request.parameters) {
        parameters_.answer_limit = request.parameters.memory_limit;
    }

    Status read(JobFiles files, Execution& execution) override {
        return search_.map(request_.search, files, execution.stop(), Arrival::later);
    }
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        return keep(device.compute<KnnOnDevice>(parameters_, search_.queries(), search_.items(),
                                                search_.keys(), memory, execution),
                    answer_);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning neighbours", 0);
        return append_neighbours(file, answer_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return KnnReply{report, request_.search.queries.rows, answer_.items.size(),
                        answer_.rescored, answer_.escalated};
    }

private:
    KnnParameters parameters_;
    MappedSearch search_;
    Neighbours answer_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitKnn& request);

}  // namespace gputext
