#include <algorithm>
#include <vector>

#include "cpp/operator_job.hpp"
#include "cpp/stoppable.hpp"

namespace gputext {
namespace {

/// The matrix that a request's files hold.
class MappedMatrix {
public:
    /// Takes the matrix' files off the front of `files`.
    Status map(const MatrixShape& shape, std::span<const FileDescriptor>& files, Stop stop) {
        const auto own = files.first(shape.files());
        files = files.subspan(shape.files());
        const std::uint64_t size = shape.stored * element_size(shape.element);
        Status status = map_file(own[0], size, Trust::sealed_or_disk, elements_);
        vectors_ = {shape.element, shape.rows, shape.dimensions, elements_.bytes().data(), {}, {}};
        if (!status.ok() || !shape.sparse) return status;
        status =
            map_file(own[1], shape.stored * sizeof(std::uint32_t), Trust::sealed_or_disk, columns_);
        const std::size_t begins = std::size_t{shape.rows} + 1;
        if (status.ok())
            status = map_file(own[2], begins * sizeof(std::uint64_t), Trust::sealed, begins_);
        if (!status.ok()) return status;
        vectors_.columns = columns_.array<std::uint32_t>(0, shape.stored);
        vectors_.row_begins = begins_.array<std::uint64_t>(0, begins);
        return check_row_begins(vectors_.row_begins, shape.stored, stop);
    }

    const Vectors& vectors() const { return vectors_; }

private:
    MappedFile elements_, columns_, begins_;
    Vectors vectors_;
};

template <class T>
Status append_all(MemoryFile& file, const std::vector<T>& values, Stop stop) {
    constexpr std::size_t step = std::max<std::size_t>(1, kLookEvery / sizeof(T));
    for (std::size_t begin = 0; begin < values.size(); begin += step) {
        if (stop()) return Status::cancelled();
        const std::size_t count = std::min(step, values.size() - begin);
        Status status = append_array(file, values.data() + begin, count * sizeof(T));
        if (!status.ok()) return status;
    }
    return {};
}

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

class NeighboursJob : public VectorJob<SubmitNeighbours> {
public:
    using VectorJob::VectorJob;

    const char* operation() const override { return "nearest_neighbours"; }
    std::uint64_t rows() const override {
        return std::uint64_t{request_.queries.rows} + request_.items.rows;
    }
    std::uint64_t bytes() const override {
        return request_.queries.bytes() + request_.items.bytes();
    }

    Status read(std::span<const FileDescriptor> files, Execution& execution) override {
        Status status = queries_.map(request_.queries, files, execution.stop());
        if (status.ok()) status = items_.map(request_.items, files, execution.stop());
        if (!status.ok() || !request_.has_keys) return status;
        const std::size_t queries = request_.queries.rows, items = request_.items.rows;
        status =
            map_file(files[0], (queries + items) * sizeof(std::uint32_t), Trust::sealed, key_file_);
        if (!status.ok()) return status;
        keys_ = {key_file_.array<std::uint32_t>(0, queries),
                 key_file_.array<std::uint32_t>(queries * sizeof(std::uint32_t), items)};
        return {};
    }
    Status run(Device& device, std::uint64_t memory, Execution& execution) override {
        return device.nearest_neighbours(parameters(), queries_.vectors(), items_.vectors(), keys_,
                                         memory, execution, answer_);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning neighbours", 0);
        Status status = append_all(file, answer_.begins, execution.stop());
        if (status.ok()) status = append_all(file, answer_.distances, execution.stop());
        if (status.ok()) status = append_all(file, answer_.items, execution.stop());
        return status;
    }
    Message reply(const JobReport& report) const override {
        return NeighboursReply{report, request_.queries.rows, answer_.items.size(),
                               answer_.rescored, answer_.escalated};
    }

private:
    KnnParameters parameters() const {
        KnnParameters parameters;
        parameters.k = request_.k;
        parameters.metric = request_.metric;
        parameters.radius = request_.radius;
        parameters.include_ties = request_.include_ties;
        parameters.memory_limit = request_.host_memory_limit;
        return parameters;
    }

    MappedMatrix queries_, items_;
    MappedFile key_file_;
    RowKeys keys_;
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

class OutliersJob : public ScoresJob<SubmitOutliers> {
public:
    using ScoresJob::ScoresJob;

    const char* operation() const override { return "local_outlier_factor"; }
    std::uint64_t rows() const override { return request_.items.rows; }
    std::uint64_t bytes() const override { return request_.items.bytes(); }

    Status read(std::span<const FileDescriptor> files, Execution& execution) override {
        return items_.map(request_.items, files, execution.stop());
    }
    Status run(Device& device, std::uint64_t memory, Execution& execution) override {
        OutlierParameters parameters;
        parameters.k = request_.k;
        parameters.metric = request_.metric;
        parameters.ties = request_.ties;
        parameters.memory_limit = request_.host_memory_limit;
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
    Status run(Device& device, std::uint64_t memory, Execution& execution) override {
        return device.cosine_similarities(query_.vectors(), items_.vectors(), memory, execution,
                                          scores_);
    }

private:
    MappedMatrix query_;
};

}  // namespace

std::unique_ptr<OperatorJob> neighbours_job(const SubmitNeighbours& request) {
    return std::make_unique<NeighboursJob>(request);
}

std::unique_ptr<OperatorJob> outliers_job(const SubmitOutliers& request) {
    return std::make_unique<OutliersJob>(request);
}

std::unique_ptr<OperatorJob> similarities_job(const SubmitSimilarities& request) {
    return std::make_unique<SimilaritiesJob>(request);
}

}  // namespace gputext
