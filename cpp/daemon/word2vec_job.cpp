#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "cpp/daemon/job_files.hpp"
#include "cpp/daemon/job_of.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/embeddings/word2vec.hpp"

namespace gputext {

Result<std::unique_ptr<WordTrainer>> Word2VecOnDevice::on_host(const TrainerParameters& parameters,
                                                               const WordSampling& sampling,
                                                               const TokenStream& tokens,
                                                               std::uint64_t, Execution&) {
    return cpu_word_trainer(parameters, sampling, tokens);
}

template <>
class Job<SubmitWord2Vec> : public JobOf<SubmitWord2Vec> {
public:
    using JobOf::JobOf;

    Status read(JobFiles files, Execution&) override {
        TokenStream& tokens = input_.tokens;
        GPUTEXT_TRY(map_next(files, request_.tokens, Trust::sealed_or_disk, words_, tokens.words));
        GPUTEXT_TRY(
            map_next(files, request_.tokens, Trust::sealed_or_disk, positions_, tokens.positions));
        GPUTEXT_TRY(map_next(files, request_.words, Trust::sealed, counts_, input_.counts));
        if (request_.known > 0)
            GPUTEXT_TRY(map_next(files, request_.known_floats(), Trust::sealed_or_disk, known_,
                                 input_.known));
        return {};
    }
    /// Replicas are what several devices can work on at once.
    Result<std::size_t> prepare(std::size_t devices, Execution& execution) override {
        input_.parameters = request_.parameters;
        input_.sample = request_.sample;
        run_.emplace(input_);
        GPUTEXT_TRY(run_->prepare(execution));
        return std::min<std::size_t>(devices, request_.parameters.replicas);
    }
    /// A part joins the training; the first to come may do all of it.
    Status run(std::size_t, Device& device, std::uint64_t memory, Execution& execution) override {
        const auto trainer = [&](const TrainerParameters& parameters, const WordSampling& sampling,
                                 const TokenStream& tokens, Execution& on) {
            return device.compute<Word2VecOnDevice>(parameters, sampling, tokens, memory, on);
        };
        // The trainer has taken some of the memory meanwhile.
        const auto search = [&](KnnParameters parameters, const Vectors& queries,
                                const Vectors& items, Execution& on, Neighbors& answer) {
            parameters.memory_limit = request_.host_memory_limit;
            parameters.answer_limit = request_.host_memory_limit;
            return take_answer(
                device.compute<KnnOnDevice>(parameters, queries, items, RowKeys(),
                                            std::min(memory, device.free_memory()), on),
                answer);
        };
        return run_->take_part(trainer, search, execution);
    }
    Status write(MemoryFile& file, Execution& execution) override {
        execution.begin_phase("returning vectors", 0);
        GPUTEXT_TRY(append_all(file, run_->model().vectors, execution.stop()));
        GPUTEXT_TRY(append_all(file, run_->model().outputs, execution.stop()));
        return {};
    }
    Message reply(const JobReport& report) const override {
        const Training::Hub hub = run_->hub();
        return Word2VecReply{report, request_.words, request_.parameters.dimensions, hub.lists,
                             hub.of};
    }

private:
    MappedFile words_, positions_, counts_, known_;
    TrainingInput input_;
    std::optional<TrainingRun> run_;
};

template std::unique_ptr<OperatorJob> new_job(const SubmitWord2Vec& request);

}  // namespace gputext
