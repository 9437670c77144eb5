// cpp/embeddings/word2vec.hpp - state of a word2vec training, from the first vectors to the last
//
// Runs the epochs, averages replicas that are trained separately, and finds farthest words, with
// any cpp/embeddings/trainer.hpp. Between averages each replica is trained by any free trainer, so
// that the result does not depend on the number of trainers.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/embeddings/detail/sampling.hpp"
#include "cpp/embeddings/trainer.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"

namespace gputext {

struct TrainingParameters : TrainerParameters {
    static constexpr std::uint32_t kMostEpochs = 100000, kMostReplicas = 64, kMostBatch = 1 << 20;
    static constexpr std::uint64_t kMostWords = (std::uint64_t{1} << 31) - 1;

    std::uint32_t far_count = 0;      // farthest words of each word as negatives; 0: none
    std::uint32_t farthest_from = 0;  // the epoch, from 0, that they are used from
    /// Tokens of a replica after which the replicas are averaged, with more than one; at the end of
    /// an epoch in any case.
    std::uint64_t average_every = std::uint64_t{1} << 22;
};

/// Error: invalid_argument.
Status check_training(const TrainingParameters& parameters, std::uint64_t words);

/// The first values: vectors at random within 0.5 / dimensions of 0, outputs 0. Those of `known`,
/// row by row up to its end, stay as they are. O(values), in threads. Error: cancelled.
Status start_vectors(const TrainingParameters& parameters, std::uint64_t words,
                     TrainingModel& model, Execution& execution);

/// Finds far_count words for each word.
using FarthestSearch = std::function<Status(const TrainingModel& model, Execution& execution,
                                            std::vector<std::uint32_t>& farthest)>;
/// knn() of cpp/knn/knn.hpp, wherever it is computed.
using NearestSearch =
    std::function<Status(const KnnParameters& parameters, const Vectors& queries,
                         const Vectors& items, Execution& execution, Neighbors& answer)>;

/// The words with the smallest cosine of their vectors, ties by number: those that an exact search
/// finds nearest to the negated vector. A word without so many stands in for those that lack.
FarthestSearch farthest_search(const TrainingParameters& parameters, NearestSearch nearest);
/// A NearestSearch.
Status nearest_on_cpu(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
                      Execution& execution, Neighbors& answer);

/// A training that several threads may take part in, each with a trainer of its own.
class Training {
public:
    Training(const TrainingParameters& parameters, std::uint64_t words, std::uint64_t tokens,
             TrainingModel model);

    /// Takes part until there is nothing left to do that others have not begun, or what they have
    /// begun has ended. One alone does all. Fails with the first error of this thread's own
    /// trainer, whose unfinished part another takes then, or the next call. Shows the epoch and the
    /// loss, and as the steps of its phase the tokens of all epochs and replicas.
    Status take_part(WordTrainer& trainer, const FarthestSearch& search, Execution& execution);

    /// The trained model; to be called after take_part() of all parts.
    const TrainingModel& model() const { return model_; }
    TrainingCount count() const;
    /// In how many of the lists that were searched for the most frequent farthest word was, of how
    /// many: few words are far from very many. 0 of 0 without farthest words.
    struct Hub {
        std::uint64_t lists = 0, of = 0;
    };
    Hub hub() const;

private:
    enum class State : std::uint8_t { open, running, done };

    bool finished() const { return epoch_ == parameters_.epochs; }
    bool search_needed() const;
    void show(Execution& execution) const;
    Status search_farthest(std::unique_lock<std::mutex>& lock, const FarthestSearch& search,
                           Execution& execution);
    Status train_replica(std::unique_lock<std::mutex>& lock, std::uint32_t replica,
                         WordTrainer& trainer, std::uint64_t& held, Execution& execution);
    /// A round ends where the model is needed: for an average, a search, or the end.
    std::uint32_t end_of_round() const;
    void end_round(std::uint32_t end, unsigned threads);
    void average(unsigned threads);

    const TrainingParameters parameters_;
    const std::uint64_t words_;
    const std::uint64_t tokens_;  // of all epochs
    const std::uint32_t parts_;   // of an epoch, between averages

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    TrainingModel model_;
    std::uint64_t version_ = 1;  // of the model
    std::uint32_t epoch_ = 0, part_ = 0;
    std::vector<State> states_;           // of the replicas in this part of the epoch
    std::vector<TrainingModel> trained_;  // their models, where there are several
    State search_ = State::open;          // of this epoch
    std::vector<std::uint32_t> farthest_;
    TrainingCount count_;
    /// The mean of what a replica has trained last; a device that joins later shows it at first.
    double loss_ = std::numeric_limits<double>::quiet_NaN();
    Hub hub_;
};

/// Bytes of memory that a training on the CPU takes beside the tokens, at most.
std::uint64_t training_bytes(const TrainingParameters& parameters, std::uint64_t words,
                             std::uint64_t tokens, unsigned threads);

// ---- Word2vec training from input to answer, shared by gputextd and a session ----

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
    /// Runs the whole training on the CPU, on the execution's threads.
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

/// The default learning rate of a model.
float usual_learning_rate(WordModel model);

/// How many windows a step of a training on so many tokens should have: few enough that each
/// replica takes some thousand steps an epoch, and at most as many as keep a device busy.
std::uint32_t usual_batch(std::uint64_t tokens, std::uint32_t replicas);

}  // namespace gputext
