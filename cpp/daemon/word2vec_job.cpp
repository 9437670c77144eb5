#include <algorithm>
#include <memory>
#include <vector>

#include "cpp/daemon/operator_job.hpp"
#include "cpp/daemon/vector_files.hpp"
#include "cpp/embeddings/training_run.hpp"

namespace gputext {
namespace {

TrainingParameters parameters_of(const SubmitTraining& request) {
    TrainingParameters parameters;
    parameters.model = request.model;
    parameters.dimensions = request.dimensions;
    parameters.window = request.window;
    parameters.negative = request.negative;
    parameters.epochs = request.epochs;
    parameters.replicas = request.replicas;
    parameters.batch = request.batch;
    parameters.learning_rate = request.learning_rate;
    parameters.damping = request.damping;
    parameters.seed = request.seed;
    parameters.far_count = request.far_count;
    parameters.farthest_from = request.farthest_from;
    parameters.average_every = request.average_every;
    return parameters;
}

class Word2vecJob : public OperatorJob {
public:
    explicit Word2vecJob(const SubmitTraining& request) : request_(request) {}

    const char* operation() const override { return "word2vec"; }
    std::uint16_t request_type() const override { return SubmitTraining::type; }
    const JobLimits& limits() const override { return request_; }
    std::uint64_t rows() const override { return request_.tokens; }
    std::uint64_t bytes() const override {
        return 2 * request_.tokens * sizeof(std::uint32_t) +
               request_.words * sizeof(std::uint64_t) + known_floats() * sizeof(float);
    }

    Status read(std::span<const FileDescriptor> files, Execution&) override {
        const std::uint64_t token_bytes = request_.tokens * sizeof(std::uint32_t);
        Status status = map_file(files[0], token_bytes, Trust::sealed_or_disk, words_);
        if (status.ok())
            status = map_file(files[1], token_bytes, Trust::sealed_or_disk, positions_);
        if (status.ok())
            status =
                map_file(files[2], request_.words * sizeof(std::uint64_t), Trust::sealed, counts_);
        if (status.ok() && request_.known > 0)
            status =
                map_file(files[3], known_floats() * sizeof(float), Trust::sealed_or_disk, known_);
        return status;
    }
    /// Replicas are what several devices can work on at once.
    Result<std::size_t> prepare(std::size_t devices, Execution&) override {
        TrainingInput input;
        input.parameters = parameters_of(request_);
        input.sample = request_.sample;
        input.tokens = {words_.array<std::uint32_t>(0, request_.tokens),
                        positions_.array<std::uint32_t>(0, request_.tokens)};
        input.counts = counts_.array<std::uint64_t>(0, request_.words);
        if (request_.known > 0) input.known = known_.array<float>(0, known_floats());
        run_.emplace(input);
        if (Status status = run_->prepare(); !status.ok()) return status;
        return std::min<std::size_t>(devices, request_.replicas);
    }
    /// A part joins the training; the first to come may do all of it.
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        const auto trainer = [&](const TrainerParameters& parameters, const WordSampling& sampling,
                                 const TokenStream& tokens, Execution& on) {
            return device.word_trainer(parameters, sampling, tokens, memory, on);
        };
        // The trainer has taken some of the memory meanwhile.
        const auto search = [&](KnnParameters parameters, const Vectors& queries,
                                const Vectors& items, Execution& on, Neighbours& answer) {
            parameters.memory_limit = request_.host_memory_limit;
            parameters.answer_limit = request_.host_memory_limit;
            return device.knn(parameters, queries, items, {},
                              std::min(memory, device.free_memory()), on, answer);
        };
        return run_->take_part(trainer, search, execution);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning vectors", 0);
        Status status = append_all(file, run_->model().vectors, execution.stop());
        if (status.ok()) status = append_all(file, run_->model().outputs, execution.stop());
        return status;
    }
    Message reply(const JobReport& report) const override {
        const Training::Hub hub = run_->hub();
        return TrainingReply{report, request_.words, request_.dimensions, hub.lists, hub.of};
    }

private:
    std::uint64_t known_floats() const {
        return std::uint64_t{2} * request_.known * request_.dimensions;
    }

    const SubmitTraining request_;
    MappedFile words_, positions_, counts_, known_;
    std::optional<TrainingRun> run_;
};

}  // namespace

std::unique_ptr<OperatorJob> word2vec_job(const SubmitTraining& request) {
    return std::make_unique<Word2vecJob>(request);
}

}  // namespace gputext
