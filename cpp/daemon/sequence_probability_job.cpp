#include "cpp/daemon/operator_job.hpp"
#include "cpp/daemon/vector_files.hpp"
#include "cpp/embeddings/sequence_probability.hpp"

namespace gputext {
namespace {

WordVectors words_of(const MappedMatrix& matrix) {
    const Vectors& vectors = matrix.vectors();
    return {static_cast<const float*>(vectors.elements), vectors.rows, vectors.dimensions};
}

class SequenceProbabilityJob : public OperatorJob {
public:
    explicit SequenceProbabilityJob(const SubmitSequenceProbabilities& request)
        : request_(request) {}

    const char* operation() const override { return "sequence_probability"; }
    std::uint16_t request_type() const override { return SubmitSequenceProbabilities::type; }
    const JobLimits& limits() const override { return request_; }
    std::uint64_t rows() const override { return request_.sequences; }
    std::uint64_t bytes() const override {
        return request_.vectors.bytes() + request_.outputs.bytes() +
               request_.tokens * sizeof(std::uint32_t);
    }

    Status read(std::span<const FileDescriptor> files, Execution& execution) override {
        Status status = vectors_.map(request_.vectors, files, execution.stop());
        if (status.ok()) status = outputs_.map(request_.outputs, files, execution.stop());
        const std::size_t begins = std::size_t{request_.sequences} + 1;
        if (status.ok())
            status = map_file(files[0], begins * sizeof(std::uint64_t), Trust::sealed, begins_);
        if (status.ok())
            status = map_file(files[1], request_.tokens * sizeof(std::uint32_t),
                              Trust::sealed_or_disk, tokens_);
        if (!status.ok()) return status;
        sequences_ = {begins_.array<std::uint64_t>(0, begins),
                      tokens_.array<std::uint32_t>(0, request_.tokens)};
        return check_sequences(sequences_, request_.vectors.rows, execution.stop());
    }
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        return device.sequence_probabilities({words_of(vectors_), words_of(outputs_)}, sequences_,
                                             memory, execution, answer_);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning rows", 0);
        Status status = append_all(file, answer_.sequences, execution.stop());
        return status.ok() ? append_all(file, answer_.tokens, execution.stop()) : status;
    }
    Message reply(const JobReport& report) const override {
        return SequenceProbabilitiesReply{report, request_.sequences, request_.tokens};
    }

private:
    const SubmitSequenceProbabilities request_;
    MappedMatrix vectors_, outputs_;
    MappedFile begins_, tokens_;
    TokenSequences sequences_;
    SequenceProbabilities answer_;
};

}  // namespace

std::unique_ptr<OperatorJob> sequence_probability_job(const SubmitSequenceProbabilities& request) {
    return std::make_unique<SequenceProbabilityJob>(request);
}

}  // namespace gputext
