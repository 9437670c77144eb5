// cpp/training_run.hpp - a training of words from its input to its answer, as gputextd and a
// session run it alike
//
// The farthest words of a word are found by an exact search for what is nearest to its negated
// vector, so that every device finds the same ones. A word that is among the farthest of very many
// is a hub: which one is the worst is kept, since negatives that are always the same few words
// teach little.

#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "cpp/cooccurrences.hpp"
#include "cpp/execution.hpp"
#include "cpp/knn.hpp"
#include "cpp/status.hpp"
#include "cpp/vectors.hpp"
#include "cpp/word2vec.hpp"
#include "cpp/word_sampling.hpp"
#include "cpp/word_trainer.hpp"

namespace gputext {

/// Views, but for the parameters: whoever made them keeps the memory.
struct TrainingInput {
    TrainingParameters parameters;
    double sample = 1e-4;  // of word_sampling()
    TokenStream tokens;
    std::span<const std::uint64_t> counts;  // of each word; not all of them 0
    /// Of the first words, that have been trained before: their vectors, row by row, and behind all
    /// of these their outputs.
    std::span<const float> known;
};

/// The word that was in most lists of farthest words at one time, the first one of several.
struct FarthestHub {
    std::uint32_t word = 0;
    std::uint32_t lists = 0;  // 0: there were none
};

class TrainingRun {
public:
    /// The input's views live as long as this.
    explicit TrainingRun(const TrainingInput& input) : input_(input) {}

    /// Before anything else. Error: invalid_argument, also for known vectors that are not finite or
    /// of more words than there are.
    Status prepare();

    /// cpu_word_trainer(), or that of a device.
    using MakeTrainer = std::function<Result<std::unique_ptr<WordTrainer>>(
        const TrainerParameters& parameters, const WordSampling& sampling,
        const TokenStream& tokens, Execution& execution)>;
    /// nearest_neighbours(), or that of a device.
    using NeighbourSearch =
        std::function<Status(const KnnParameters& parameters, const Vectors& queries,
                             const Vectors& items, Execution& execution, Neighbours& answer)>;
    /// As Training::take_part(); may be called by several threads at once, with trainers of their
    /// own. Ok at once when nothing is left to do.
    Status take_part(const MakeTrainer& make_trainer, const NeighbourSearch& search,
                     Execution& execution);

    /// After take_part() was ok on all threads.
    const WordVectors& model() const { return training_->model(); }
    FarthestHub hub() const { return hub_; }

private:
    Status find_farthest(const NeighbourSearch& search, const WordVectors& model, std::uint32_t k,
                         Execution& execution, std::vector<std::uint32_t>& farthest);
    void count_hub(std::span<const std::uint32_t> farthest);

    TrainingInput input_;
    WordSampling sampling_;
    std::optional<Training> training_;
    std::atomic<bool> all_begun_{false};
    std::mutex hub_mutex_;
    FarthestHub hub_;
};

/// All of it on the CPU, on the execution's threads.
Status run_on_cpu(TrainingRun& run, Execution& execution);

/// Bytes that a training takes at most on the CPU beside its tokens, the answer included.
std::uint64_t training_bytes(const TrainingParameters& parameters, std::uint64_t words,
                             std::uint64_t tokens);

/// What is usual for a model: word2vec's own.
float usual_learning_rate(WordModel model);

/// How many windows a step of a training on so many tokens should have: few enough that each shard
/// takes some thousand steps an epoch, and at most as many as keep a device busy.
std::uint32_t usual_batch(std::uint64_t tokens, std::uint32_t shards);

}  // namespace gputext
