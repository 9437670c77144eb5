#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/sequence_probability_on_device.hpp"
#include "cpp/embeddings/sequence_probability.hpp"

namespace gputext {

Result<SequenceProbabilities> SequenceProbabilityOnDevice::on_host(const NextWordModel& model,
                                                                   const TokenSequences& sequences,
                                                                   std::uint64_t,
                                                                   Execution& execution) {
    return sequence_probabilities(model, sequences, best_simd(), execution);
}

template <>
class Job<SubmitSequenceProbability> : public JobOf<SubmitSequenceProbability> {
public:
    using JobOf::JobOf;

    Status read(JobFiles files, Execution& execution) override {
        GPUTEXT_TRY(vectors_.map(request_.vectors, files, execution.stop()));
        GPUTEXT_TRY(outputs_.map(request_.outputs, files, execution.stop()));
        GPUTEXT_TRY(map_next(files, std::uint64_t{request_.sequences} + 1, Trust::sealed, begins_,
                             sequences_.begins));
        GPUTEXT_TRY(
            map_next(files, request_.tokens, Trust::sealed_or_disk, tokens_, sequences_.tokens));
        return check_sequences(sequences_, request_.vectors.rows, execution.stop());
    }
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        const NextWordModel model{vectors_.words(), outputs_.words()};
        return keep(
            device.compute<SequenceProbabilityOnDevice>(model, sequences_, memory, execution),
            answer_);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning rows", 0);
        GPUTEXT_TRY(append_all(file, answer_.sequences, execution.stop()));
        return append_all(file, answer_.tokens, execution.stop());
    }
    Message reply(const JobReport& report) const override {
        return SequenceProbabilityReply{report, request_.sequences, request_.tokens};
    }

private:
    MappedMatrix vectors_, outputs_;
    MappedFile begins_, tokens_;
    TokenSequences sequences_;
    SequenceProbabilities answer_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitSequenceProbability& request);

}  // namespace gputext
