// The operators that a device without kernels of its own for them computes on the host's threads.

#include "cpp/daemon/device.hpp"

#include <algorithm>
#include <memory>

namespace gputext {
namespace {

template <class Answer>
Status keep(Result<Answer> found, Answer& answer) {
    if (!found.ok()) return found.status();
    answer = std::move(*found);
    return {};
}

}  // namespace

Status Device::knn(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
                   const RowKeys& keys, std::uint64_t memory, Execution& execution,
                   Neighbours& answer) {
    KnnParameters within = parameters;
    within.memory_limit = std::min<std::uint64_t>(parameters.memory_limit, memory);
    return keep(gputext::knn(within, queries, items, keys, execution), answer);
}

Status Device::term_knn(const TermKnnParameters& parameters, std::span<const double> factors,
                        const Vectors& queries, const Vectors& items, const RowKeys& keys,
                        std::uint64_t memory, Execution& execution, Neighbours& answer) {
    TermKnnParameters within = parameters;
    within.memory_limit = std::min<std::uint64_t>(parameters.memory_limit, memory);
    return keep(gputext::term_knn(within, factors, queries, items, keys, execution), answer);
}

Status Device::local_outlier_factors(const OutlierParameters& parameters, const Vectors& items,
                                     std::uint64_t memory, Execution& execution,
                                     std::vector<double>& factors) {
    OutlierParameters within = parameters;
    within.memory_limit = std::min<std::uint64_t>(parameters.memory_limit, memory);
    return keep(gputext::local_outlier_factors(within, items, execution), factors);
}

Status Device::cosine_similarities(const Vectors& query, const Vectors& items, std::uint64_t,
                                   Execution& execution, std::vector<double>& similarities) {
    return keep(gputext::cosine_similarities(query, items, best_simd(), execution), similarities);
}

Status Device::k_means(const KMeansParameters& parameters, const Vectors& items, std::uint64_t,
                       Execution& execution, KMeans& answer) {
    return keep(gputext::k_means(parameters, items, execution), answer);
}

Status Device::lookup_words(std::span<const std::uint8_t> dictionary, const Words& words,
                            std::uint64_t, Execution& execution, std::span<std::uint32_t> codes) {
    const Result<std::unique_ptr<Trie>> trie = open_trie(dictionary);
    if (!trie.ok()) return trie.status();
    return gputext::lookup_words(**trie, words, codes, execution);
}

Status Device::build_trie(TrieStructure structure, const Words& words, std::uint64_t,
                          Execution& execution, std::vector<std::uint8_t>& image) {
    return keep(gputext::build_trie(structure, words, execution), image);
}

Status Device::word_similarities(const SimilarityParameters& parameters,
                                 const WeightParameters& weights, const CooccurrenceShape& shape,
                                 const TokenStream& tokens, std::uint64_t memory,
                                 Execution& execution, Thesaurus& answer) {
    const auto counts =
        gputext::count_cooccurrences(shape, tokens, memory, execution, parameters.memory_limit);
    if (!counts.ok()) return counts.status();
    return Device::word_similarities(parameters, weights, *counts, memory, execution, answer);
}

Status Device::word_similarities(const SimilarityParameters& parameters,
                                 const WeightParameters& weights, const Cooccurrences& counts,
                                 std::uint64_t memory, Execution& execution, Thesaurus& answer) {
    const auto features = weigh_features(weights, counts, execution);
    if (!features.ok()) return features.status();
    SimilarityParameters within = parameters;
    within.memory_limit = std::min<std::uint64_t>(parameters.memory_limit, memory);
    return keep(gputext::word_similarities(within, *features, execution), answer);
}

Result<std::unique_ptr<WordTrainer>> Device::word_trainer(const TrainerParameters& parameters,
                                                          const WordSampling& sampling,
                                                          const TokenStream& tokens, std::uint64_t,
                                                          Execution&) {
    return cpu_word_trainer(parameters, sampling, tokens);
}

Status Device::word_movers_distances(const MoversParameters& parameters, const WordVectors& vectors,
                                     const TextPairs& pairs, std::uint64_t, Execution& execution,
                                     std::span<double> distances) {
    const auto found = gputext::word_movers_distances(parameters, vectors, pairs, execution);
    if (!found.ok()) return found.status();
    std::copy(found->begin(), found->end(), distances.begin());
    return {};
}

Status Device::sequence_probabilities(const NextWordModel& model, const TokenSequences& sequences,
                                      std::uint64_t, Execution& execution,
                                      SequenceProbabilities& answer) {
    return keep(gputext::sequence_probabilities(model, sequences, best_simd(), execution), answer);
}

}  // namespace gputext
