#include <algorithm>
#include <vector>

#include "cpp/daemon/operator_job.hpp"
#include "cpp/daemon/vector_files.hpp"

namespace gputext {
namespace {

/// What the jobs of requests of one type have in common.
template <class Request>
class VectorJob : public OperatorJob {
public:
    explicit VectorJob(const Request& request) : request_(request) {}

    std::uint16_t request_type() const override { return Request::type; }
    const JobLimits& limits() const override { return request_; }

protected:
    const Request request_;
};

class KnnJob : public VectorJob<SubmitNeighbours> {
public:
    using VectorJob::VectorJob;

    const char* operation() const override { return "knn"; }
    std::uint64_t rows() const override {
        return std::uint64_t{request_.queries.rows} + request_.items.rows;
    }
    std::uint64_t bytes() const override {
        return request_.queries.bytes() + request_.items.bytes();
    }

    Status read(std::span<const FileDescriptor> files, Execution& execution) override {
        return search_.map(request_, files, execution.stop());
    }
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        return device.knn(parameters(), search_.queries(), search_.items(), search_.keys(), memory,
                          execution, answer_);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning neighbours", 0);
        return append_neighbours(file, answer_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return KnnReply{report, request_.queries.rows, answer_.items.size(), answer_.rescored,
                        answer_.escalated};
    }

private:
    KnnParameters parameters() const {
        KnnParameters parameters;
        parameters.k = request_.k;
        parameters.metric = request_.metric;
        parameters.radius = request_.radius;
        parameters.include_ties = request_.include_ties;
        parameters.memory_limit = request_.host_memory_limit;
        parameters.answer_limit = request_.host_memory_limit;
        return parameters;
    }

    MappedSearch search_;
    Neighbours answer_;
};

/// A job that is answered by a number for each item.
template <class Request>
class ScoresJob : public VectorJob<Request> {
public:
    using VectorJob<Request>::VectorJob;

    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning rows", 0);
        return append_all(file, scores_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return ScoresReply{report, static_cast<std::uint32_t>(scores_.size())};
    }

protected:
    MappedMatrix items_;
    std::vector<double> scores_;
};

class OutlierFactorJob : public ScoresJob<SubmitOutliers> {
public:
    using ScoresJob::ScoresJob;

    const char* operation() const override { return "local_outlier_factor"; }
    std::uint64_t rows() const override { return request_.items.rows; }
    std::uint64_t bytes() const override { return request_.items.bytes(); }

    Status read(std::span<const FileDescriptor> files, Execution& execution) override {
        return items_.map(request_.items, files, execution.stop());
    }
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        OutlierParameters parameters;
        parameters.k = request_.k;
        parameters.metric = request_.metric;
        parameters.ties = request_.ties;
        parameters.memory_limit = request_.host_memory_limit;
        parameters.answer_limit = request_.host_memory_limit;
        return device.local_outlier_factors(parameters, items_.vectors(), memory, execution,
                                            scores_);
    }
};

class SimilaritiesJob : public ScoresJob<SubmitSimilarities> {
public:
    using ScoresJob::ScoresJob;

    const char* operation() const override { return "cosine_similarities"; }
    std::uint64_t rows() const override { return request_.items.rows; }
    std::uint64_t bytes() const override { return request_.items.bytes(); }

    Status read(std::span<const FileDescriptor> files, Execution& execution) override {
        Status status = query_.map(request_.query, files, execution.stop());
        return status.ok() ? items_.map(request_.items, files, execution.stop()) : status;
    }
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        return device.cosine_similarities(query_.vectors(), items_.vectors(), memory, execution,
                                          scores_);
    }

private:
    MappedMatrix query_;
};

}  // namespace

std::unique_ptr<OperatorJob> neighbours_job(const SubmitNeighbours& request) {
    return std::make_unique<KnnJob>(request);
}

std::unique_ptr<OperatorJob> outlier_factor_job(const SubmitOutliers& request) {
    return std::make_unique<OutlierFactorJob>(request);
}

std::unique_ptr<OperatorJob> similarities_job(const SubmitSimilarities& request) {
    return std::make_unique<SimilaritiesJob>(request);
}

}  // namespace gputext
