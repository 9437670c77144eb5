// cpp/embeddings/sequence_probability.hpp - probability of each token of a sequence after the one
// before, by a model
//
// Source: the thesis of 2019, equation 6-1. With v the vectors of words and w their output vectors,
// token b follows token a with the softmax over the whole vocabulary
//
//   p(b | a) = exp(v[a] . w[b]) / sum of exp(v[a] . w[x]) over all words x
//
// and the probability of a sequence of M tokens is the sum of its M - 1 p(token i + 1 | token i),
// divided by M. To have the same bits wherever it is computed:
//
//   x[b] = lane_dot(v[a], w[b]) of cpp/base/lane_sums.hpp, m = the largest x[b]
//   e[b] = 2^40 * natural_exp(x[b] - m) of cpp/base/natural_functions.hpp
//   Z    = sum of e[b], each rounded to the nearest integer, ties to even: of whole numbers, so in
//          any order
//   p(b | a) = double(e[b]) / double(Z)
//
// A sequence's sum is taken in doubles, in the order of its tokens. What is kept of a p is rounded
// to binary32. The p of all words after one add up to 1 to about 2^-22; dots are off by 2^-24 of
// the sum of the products' magnitudes, about, and so p by that share.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/embeddings/detail/word_vectors.hpp"

namespace gputext {

/// Words that a model of next words may have: more could overflow Z.
inline constexpr std::size_t kMostNextWords = (std::size_t{1} << 24) - 1;

/// The vectors of words and the output vectors of the same words: as many, of one length.
struct NextWordModel {
    WordVectors vectors;
    WordVectors outputs;
};

/// A view: sequence s has the tokens tokens[begins[s]] to tokens[begins[s + 1] - 1], words of the
/// model.
struct TokenSequences {
    std::span<const std::uint64_t> begins;  // size() + 1
    std::span<const std::uint32_t> tokens;

    std::size_t size() const { return begins.size() - 1; }
};

struct SequenceProbabilities {
    std::vector<double> sequences;  // of each one; NaN for one without tokens
    std::vector<float> tokens;      // of each token after the one before; NaN for a first one
};

/// What the powers after a context are divided by, and the largest dot: Z and m.
struct ContextSum {
    float largest = 0;
    std::uint64_t sum = 0;
};

/// Ok when sequences begin one after the other and all tokens are below `words`. Errors:
/// invalid_argument; cancelled. O(tokens).
Status check_sequences(const TokenSequences& sequences, std::size_t words, Stop stop);

/// Errors: invalid_argument for a model of too many words; those of longest_vector(). O(elements).
Status check_next_word_model(const NextWordModel& model, Execution& execution);

/// Words that something follows in the sequences, ascending: those whose Z is needed. Error:
/// cancelled. O(tokens + words).
Result<std::vector<std::uint32_t>> contexts_of(const TokenSequences& sequences, std::size_t words,
                                               Stop stop);

/// The sums of contexts, in their order. Time: O(dimensions) for each word after each of them, 2e-8
/// s on a core with 50 dimensions. Memory: 4 bytes a word for each thread. Errors: those of
/// check_next_word_model(); cancelled; out_of_memory.
Result<std::vector<ContextSum>> context_sums(const NextWordModel& model,
                                             std::span<const std::uint32_t> contexts, Simd simd,
                                             Execution& execution);

/// `sums` has those of all contexts of the sequences, by word. O(dimensions) for each token.
/// Memory: the answer. Errors: those of check_next_word_model(); cancelled; out_of_memory.
Result<SequenceProbabilities> sequence_probabilities(const NextWordModel& model,
                                                     const TokenSequences& sequences,
                                                     std::span<const ContextSum> sums, Simd simd,
                                                     Execution& execution);

/// Both, one after the other. Memory: 16 bytes a word, too.
Result<SequenceProbabilities> sequence_probabilities(const NextWordModel& model,
                                                     const TokenSequences& sequences, Simd simd,
                                                     Execution& execution);

}  // namespace gputext
