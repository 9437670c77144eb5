// cpp/embeddings/trainer.hpp - word2vec trainer, defined to the bit
//
// Source: Mikolov et al. 2013 (skip-gram and CBOW with negative sampling); the 2019 thesis, chapter
// 5 (farthest words as negatives, replicas that are averaged). What is ours: steps are taken in
// batches whose sums are of integers, so the result depends on the parameters and the seed alone,
// not on threads, devices or time.
//
// One epoch of one replica, which is part `replica` of `replicas` of the tokens, cut at token
// tokens * replica / replicas:
//
//   entries    the replica's tokens that stay, in their order, with a break (kBreak) before the
//   first
//              token of each text but the replica's first token. Token i of all tokens stays when
//              the upper 32 bits of random_bits(random_key(seed, kKeepUse, epoch), i) are at most
//              keep[word]. A text ends where positions are more than
//              CooccurrenceShape::kMostWindow apart.
//   streams    `batch` of them, S: with L = ceil(entries / S), stream s has the entries s L ..
//              s L + L - 1, and step t of the epoch has the windows around the entries s L + t of
//              all streams; there are L steps. Neighboring windows are so never in one step, and
//              a step has a sample of all the texts.
//   window     of entry j, a word w: base = random_bits(random_key(seed, kWindowUse + replica,
//              epoch), j); b = 1 + random_below(base >> 32, window_size); the context is the words
//              c[0] .. c[m-1] of the entries from j - b to j + b but j, ascending, as far as the
//              next break or end of the replica to either side. With m = 0 there is no window.
//   outputs    o[0] = w, whose label is 1, and for q = 1 .. negative, with label 0, the word drawn
//              with bits_q = random_bits(base, q): draw_word(bits_q), or with farthest words, where
//              random_bits(base, negative + q) has its uppermost bit set, far[w * far_count +
//              random_below(bits_q >> 32, far_count)]. One that is w is left out. All words of the
//              context share them.
//   rate       a = learning_rate * max(1e-4, 1 - (epoch + t / L) / epochs) in double, to float.
//
// With x[i] = vectors[c[i]] and y[q] = outputs[o[q]] as they are before the step, every product sum
// lane_dot()'s, sums by fma from 0 in the order written:
//
//   skip-gram  g[i][q] = (label[q] - logistic(x[i] . y[q])) * a
//              dx[i] = sum over q of g[i][q] y[q];  dy[q] = sum over i of g[i][q] x[i]
//              and the steps that count: outputs for each x[i], m for each y[q]
//   CBOW       h = (sum over i of x[i], by additions) * (1 / m)
//              g[q] = (label[q] - logistic(h . y[q])) * a
//              dx[i] = sum over q of g[q] y[q], the same for all;  dy[q] = g[q] h
//              and 1 for each x[i] and y[q]
//
// Each element of each dx and dy is made an integer, rint(element * 2^kFractionBits) within
// +-kMostStep, and added up in 32 bits for its row, as are the steps n. At the end of the step
// every row with n > 0 takes its sum D:
//
//   row = fma(float(D) * 2^-kFractionBits, 1 / fma(a * damping, float(n), 1), row)
//
// The quotient is what an implicit gradient step does: hundreds of a frequent word's steps from
// one and the same old row would else go hundreds of times too far.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/embeddings/detail/sampling.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"

namespace gputext {

enum class WordModel : std::uint8_t { skipgram, cbow };

struct TrainerParameters {
    static constexpr std::uint32_t kMostDimensions = 1024;
    static constexpr std::uint32_t kMostWindow = CooccurrenceShape::kMostWindow;
    static constexpr std::uint32_t kMostNegative = 64;
    static constexpr std::uint32_t kBreak = UINT32_MAX;
    static constexpr int kFractionBits = 22;
    static constexpr float kMostStep = 1 << 28;  // in units of 2^-kFractionBits
    // Values of `use` for random_key().
    static constexpr std::uint64_t kKeepUse = 1, kStartUse = 2, kWindowUse = std::uint64_t{1} << 32;

    WordModel model = WordModel::skipgram;
    std::uint32_t dimensions = 100;  // 1 .. kMostDimensions
    std::uint32_t window = 5;        // 1 .. kMostWindow
    std::uint32_t negative = 5;      // 1 .. kMostNegative
    std::uint32_t epochs = 5;        // at least 1
    std::uint32_t replicas = 1;      // at least 1
    std::uint32_t batch = 4096;      // at least 1
    float learning_rate = 0.05f;
    float damping = 0.5f;
    std::uint64_t seed = 1;
};

/// One row of `dimensions` numbers for each word, in both.
struct TrainingModel {
    std::vector<float> vectors;  // of words as context, which is what they are known by
    std::vector<float> outputs;  // of words as what is predicted
};

/// What has been trained on, for people: not the same to the last bit everywhere.
struct TrainingCount {
    std::uint64_t tokens = 0;  // of the stream, those that did not stay included
    std::uint64_t windows = 0;
    std::uint64_t steps = 0;  // pairs of a context, or a word of it, and an output
    double loss = 0;          // sum over them of -log of the label's probability

    void add(const TrainingCount& other) {
        tokens += other.tokens;
        windows += other.windows;
        steps += other.steps;
        loss += other.loss;
    }
};

/// What to train on: the steps part L * part / parts .. L * (part + 1) / parts - 1 of an epoch of a
/// replica.
struct TrainingPart {
    std::uint32_t epoch = 0;
    std::uint32_t replica = 0;
    std::uint32_t part = 0, parts = 1;
    std::span<const std::uint32_t> farthest;  // far_count for each word, or none
};

/// Has a model of its own. The functions are called by one thread.
class WordTrainer {
public:
    virtual ~WordTrainer() = default;

    virtual Status load(const TrainingModel& model) = 0;
    /// Looks at the stop request at least every 50 ms, and counts the part's tokens as steps done
    /// of the phase; shows the loss now and then. Errors: cancelled, out_of_memory, a device's.
    virtual Status train(const TrainingPart& part, Execution& execution, TrainingCount& count) = 0;
    virtual Status store(TrainingModel& model) = 0;
};

/// As many of the threads as a step of so many windows is worth; the CPU's trainer gives each as
/// many of them.
unsigned trainer_threads(std::size_t windows, unsigned threads);

/// On the CPU, on trainer_threads() of the execution that train() is given. The views live as long
/// as the trainer. The stream's words are below sampling.keep.size(), or invalid_argument.
Result<std::unique_ptr<WordTrainer>> cpu_word_trainer(const TrainerParameters& parameters,
                                                      const WordSampling& sampling,
                                                      const TokenStream& tokens,
                                                      Simd simd = best_simd());

}  // namespace gputext
