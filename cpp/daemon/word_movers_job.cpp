#include <algorithm>
#include <vector>

#include "cpp/daemon/operator_job.hpp"
#include "cpp/daemon/vector_files.hpp"
#include "cpp/embeddings/word_movers.hpp"

namespace gputext {
namespace {

/// Pairs that are worth a device of their own.
constexpr std::size_t kLeastPart = std::size_t{1} << 16;

class WordMoversJob : public OperatorJob {
public:
    explicit WordMoversJob(const SubmitWordMovers& request) : request_(request) {
        parameters_.method = request.method;
        parameters_.memory_limit = request.host_memory_limit;
    }

    const char* operation() const override { return "word_movers_distance"; }
    std::uint16_t request_type() const override { return SubmitWordMovers::type; }
    const JobLimits& limits() const override { return request_; }
    std::uint64_t rows() const override { return request_.pairs; }
    std::uint64_t bytes() const override {
        return request_.vectors.bytes() + request_.masses * sizeof(WordMass);
    }

    Status read(std::span<const FileDescriptor> files, Execution& execution) override {
        if (Status status = vectors_.map(request_.vectors, files, execution.stop()); !status.ok())
            return status;
        const std::size_t pairs = request_.pairs, begins = 2 * pairs + 1;
        Status status = map_file(files[0], begins * sizeof(std::uint64_t), Trust::sealed, begins_);
        if (status.ok())
            status = map_file(files[1], pairs * sizeof(std::uint32_t), Trust::sealed, totals_);
        if (status.ok())
            status = map_file(files[2], request_.masses * sizeof(WordMass), Trust::sealed_or_disk,
                              masses_);
        if (!status.ok()) return status;
        pairs_ = {begins_.array<std::uint64_t>(0, begins),
                  masses_.array<WordMass>(0, request_.masses),
                  totals_.array<std::uint32_t>(0, pairs)};
        return check_text_pairs(pairs_, request_.vectors.rows, execution.stop());
    }
    Result<std::size_t> prepare(std::size_t devices, Execution&) override {
        distances_.resize(pairs_.size());
        return parts_ = std::clamp<std::size_t>(pairs_.size() / kLeastPart, 1, devices);
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        const Vectors& vectors = vectors_.vectors();
        const WordVectors model{static_cast<const float*>(vectors.elements), vectors.rows,
                                vectors.dimensions};
        const std::size_t begin = pairs_.size() * part / parts_;
        const std::size_t end = pairs_.size() * (part + 1) / parts_;
        const TextPairs own{pairs_.begins.subspan(2 * begin, 2 * (end - begin) + 1), pairs_.masses,
                            pairs_.totals.subspan(begin, end - begin)};
        return device.word_movers_distances(parameters_, model, own, memory, execution,
                                            std::span(distances_).subspan(begin, end - begin));
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning rows", 0);
        return append_all(file, distances_, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return ScoresReply{report, request_.pairs};
    }

private:
    const SubmitWordMovers request_;
    MoversParameters parameters_;
    MappedMatrix vectors_;
    MappedFile begins_, totals_, masses_;
    TextPairs pairs_;
    std::size_t parts_ = 1;
    std::vector<double> distances_;
};

}  // namespace

std::unique_ptr<OperatorJob> word_movers_job(const SubmitWordMovers& request) {
    return std::make_unique<WordMoversJob>(request);
}

}  // namespace gputext
