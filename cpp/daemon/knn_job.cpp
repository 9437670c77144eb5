#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/daemon/shared_knn.hpp"

namespace gputext {

Result<Neighbors> KnnOnDevice::on_host(const KnnParameters& parameters, const Vectors& queries,
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
        return search_.map(request_.search, files, execution.stop(),
                           keyed() ? Arrival::awaited : Arrival::later);
    }
    Result<std::size_t> prepare(std::size_t devices, Execution& execution) override {
        if (keyed())
            return shared_keyed_.prepare(parameters_, search_.queries(), search_.items(),
                                         search_.matches(), search_.keys(), devices, execution);
        return shared_.prepare(parameters_, search_.queries(), search_.items(), search_.keys(),
                               devices, execution);
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        return keyed() ? shared_keyed_.run(part, device, memory, execution)
                       : shared_.run(part, device, memory, execution);
    }
    Status merge(Execution& execution) override {
        return keyed() ? shared_keyed_.merge(execution) : shared_.merge(execution);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning neighbors", 0);
        return append_neighbors(file, answers(), execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return knn_reply(report, request_.search.queries.rows, answers());
    }

private:
    bool keyed() const { return request_.search.has_matches; }
    std::span<const Neighbors> answers() const {
        return keyed() ? shared_keyed_.answers() : shared_.answers();
    }

    KnnParameters parameters_;
    MappedSearch search_;
    SharedKnn shared_;
    SharedKeyedKnn shared_keyed_;  // in place of the other, with keys that have to match
};

template std::unique_ptr<OperatorJob> new_job(const SubmitKnn& request);

}  // namespace gputext
