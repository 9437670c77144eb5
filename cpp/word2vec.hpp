// cpp/word2vec.hpp - vectors of words from texts, from their first values to their last
//
// Epochs, shards that are trained apart and averaged, farthest words: what is the same for every
// cpp/word_trainer.hpp. Between averages each shard is trained by whoever is free, so the result
// does not depend on how many trainers there are.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cpp/execution.hpp"
#include "cpp/status.hpp"
#include "cpp/word_trainer.hpp"

namespace gputext {

struct TrainingParameters : TrainerParameters {
    std::uint32_t far_count = 0;      // farthest words of each word as negatives; 0: none
    std::uint32_t farthest_from = 0;  // the epoch, from 0, that they are used from
    /// Tokens of a shard after which the shards are averaged, with more than one; at the end of an
    /// epoch in any case.
    std::uint64_t average_every = std::uint64_t{1} << 22;
};

/// Error: invalid_argument.
Status check_training(const TrainingParameters& parameters, std::uint64_t words);

/// The first values: vectors at random within 0.5 / dimensions of 0, outputs 0. Those of `known`,
/// row by row up to its end, stay as they are.
void start_vectors(const TrainingParameters& parameters, std::uint64_t words, WordVectors& model);

/// `k` farthest words of each word by cosine of the vectors, ties by number: those that an exact
/// search finds nearest to the negated vector (cpp/knn.hpp).
using FarthestSearch =
    std::function<Status(const WordVectors& model, std::uint32_t k, Execution& execution,
                         std::vector<std::uint32_t>& farthest)>;

/// A training that several threads may take part in, each with a trainer of its own.
class Training {
public:
    Training(const TrainingParameters& parameters, std::uint64_t words, std::uint64_t tokens,
             WordVectors model);

    /// Takes part until there is nothing left to do that others have not begun. One alone does all.
    /// Returns after the last epoch, or with the first error of this thread's own trainer, whose
    /// unfinished part another takes then.
    Status take_part(WordTrainer& trainer, const FarthestSearch& search, Execution& execution);

    const WordVectors& model() const;
    TrainingCount count() const;
};

}  // namespace gputext
