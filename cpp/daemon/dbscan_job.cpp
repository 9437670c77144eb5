#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/daemon/search_parts.hpp"
#include "cpp/knn/dbscan.hpp"

namespace gputext {

/// Devices find the neighbors; the host does the rest.
template <>
class Job<SubmitDbscan> : public JobOf<SubmitDbscan> {
public:
    explicit Job(const SubmitDbscan& request) : JobOf(request), parameters_(request.parameters) {
        parameters_.answer_limit = request.parameters.memory_limit;
    }

    Status read(JobFiles files, Execution& execution) override {
        return items_.map(request_.items, files, execution.stop());
    }
    Result<std::size_t> prepare(std::size_t devices, Execution& execution) override {
        GPUTEXT_TRY(search_.set(parameters_, items_.vectors(), execution));
        const Vectors& rows = search_.rows();
        const std::size_t parts =
            devices > 1 && !rows.sparse() ? best_shares(search_.parameters(), rows, rows, false,
                                                        devices, execution.threads())
                                                .parts
                                          : 1;
        search_.share_out(parts);
        return parts;
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        const auto search = [&](const KnnParameters& wanted, const Vectors& queries,
                                const Vectors& among, const RowKeys& keys) {
            return device.compute<KnnOnDevice>(wanted, queries, among, keys, memory, execution);
        };
        return search_.run(part, search, execution);
    }
    Status merge(Execution& execution) override {
        return take_answer(search_.clusters(execution), answer_);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning rows", 0);
        GPUTEXT_TRY(append_all(file, answer_.clusters, execution.stop()));
        return append_all(file, answer_.core, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return DbscanReply{report, request_.items.rows, answer_.count};
    }

private:
    DbscanParameters parameters_;
    MappedMatrix items_;
    DbscanSearch search_;
    DbscanClusters answer_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitDbscan& request);

}  // namespace gputext
