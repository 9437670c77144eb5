// cpp/embeddings/training_run.hpp - word2vec training from input to answer, shared by gputextd and
// a session

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/embeddings/detail/sampling.hpp"
#include "cpp/embeddings/trainer.hpp"
#include "cpp/embeddings/word2vec.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"

namespace gputext {

/// Views, but for the parameters: whoever made them keeps the memory.
struct TrainingInput {
    TrainingParameters parameters;
    double sample = 1e-4;  // of word_sampling()
    TokenStream tokens;
    std::span<const std::uint64_t> counts;  // of each word; not all of them 0
    /// Vectors of the first words, which were trained before, row by row, followed by their
    /// output vectors.
    std::span<const float> known;
};

class TrainingRun {
public:
    /// The input's views live as long as this.
    explicit TrainingRun(const TrainingInput& input) : input_(input) {}

    /// Before anything else. Errors: invalid_argument, also for known vectors that are not finite
    /// or of more words than there are; cancelled.
    Status prepare(Execution& execution);

    /// cpu_word_trainer(), or that of a device.
    using MakeTrainer = std::function<Result<std::unique_ptr<WordTrainer>>(
        const TrainerParameters& parameters, const WordSampling& sampling,
        const TokenStream& tokens, Execution& execution)>;
    /// As Training::take_part(), with a trainer of its own. May be called by several threads at
    /// once, and again after an error. Ok at once when nothing is left to do.
    Status take_part(const MakeTrainer& make_trainer, const NearestSearch& nearest,
                     Execution& execution);
    /// All of it on the CPU, on the execution's threads.
    Status run_on_cpu(Execution& execution);

    /// After take_part() was ok on all threads.
    const TrainingModel& model() const { return training_->model(); }
    Training::Hub hub() const { return training_->hub(); }

private:
    TrainingInput input_;
    WordSampling sampling_;
    std::optional<Training> training_;
    std::atomic<bool> finished_{false};
};

/// What is usual for a model.
float usual_learning_rate(WordModel model);

/// How many windows a step of a training on so many tokens should have: few enough that each
/// replica takes some thousand steps an epoch, and at most as many as keep a device busy.
std::uint32_t usual_batch(std::uint64_t tokens, std::uint32_t replicas);

}  // namespace gputext
