// cpp/daemon/device.hpp - interface of a device that gputextd runs jobs on

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/base/words.hpp"
#include "cpp/documents/documents.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "cpp/embeddings/sequence_probability.hpp"
#include "cpp/embeddings/trainer.hpp"
#include "cpp/embeddings/word_movers.hpp"
#include "cpp/knn/cosine_similarity.hpp"
#include "cpp/knn/k_means.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/knn/outlier_factor.hpp"
#include "cpp/link/protocol.hpp"
#include "cpp/terms/knn.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"
#include "cpp/thesaurus/word_similarity.hpp"
#include "cpp/trie/trie.hpp"

namespace gputext {

/// One GPU, or what stands in for one. Used by one thread, always the same, so that a CUDA device
/// may be made current once.
class Device {
public:
    Device() = default;
    virtual ~Device() = default;
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    /// Name, memory in all, driver. Does not change; called before the thread starts.
    virtual DeviceInfo info() const = 0;

    /// Called once by that thread, before anything else: what makes the first job as fast as later
    /// ones.
    virtual void prepare() {}

    /// Bytes that a job may take now.
    virtual std::uint64_t free_memory() = 0;

    /// The operator of cpp/documents/near_duplicates.hpp with the same answer, in at most `memory`
    /// bytes of the device's. Looks at the stop request at least every 50 ms. Errors besides the
    /// operator's: out_of_memory, after which it is asked again with half the memory, and has to do
    /// with it what it can; device_error, after which others may use it; device_lost, after which
    /// this process ends.
    virtual Status near_duplicates(const NearDuplicateParameters& parameters,
                                   const Documents& documents, GivenSignatures signatures,
                                   std::uint64_t memory, Execution& execution,
                                   NearDuplicates& answer) = 0;

    // The operators of cpp/knn/knn.hpp, cpp/terms/knn.hpp, cpp/knn/outlier_factor.hpp,
    // cpp/knn/cosine_similarity.hpp and cpp/knn/k_means.hpp, with the same answers and all else as
    // above. What a device does not override is computed on the host's threads.
    virtual Status knn(const KnnParameters& parameters, const Vectors& queries,
                       const Vectors& items, const RowKeys& keys, std::uint64_t memory,
                       Execution& execution, Neighbours& answer);
    virtual Status term_knn(const TermKnnParameters& parameters, std::span<const double> factors,
                            const Vectors& queries, const Vectors& items, const RowKeys& keys,
                            std::uint64_t memory, Execution& execution, Neighbours& answer);
    virtual Status local_outlier_factors(const OutlierParameters& parameters, const Vectors& items,
                                         std::uint64_t memory, Execution& execution,
                                         std::vector<double>& factors);
    virtual Status cosine_similarities(const Vectors& query, const Vectors& items,
                                       std::uint64_t memory, Execution& execution,
                                       std::vector<double>& similarities);
    virtual Status k_means(const KMeansParameters& parameters, const Vectors& items,
                           std::uint64_t memory, Execution& execution, KMeans& answer);

    // lookup_words() and build_trie() of cpp/trie/trie.hpp; a broken dictionary is an error as in
    // open_trie(). A device may keep a dictionary that words were looked up in, known by its
    // checksum and size, as long as nothing else needs the memory.
    virtual Status lookup_words(std::span<const std::uint8_t> dictionary, const Words& words,
                                std::uint64_t memory, Execution& execution,
                                std::span<std::uint32_t> codes);
    virtual Status build_trie(TrieStructure structure, const Words& words, std::uint64_t memory,
                              Execution& execution, std::vector<std::uint8_t>& image);

    // Counting (cpp/thesaurus/cooccurrences.hpp) and comparing (cpp/thesaurus/word_similarity.hpp)
    // in one call: from texts, so that a device need not return the counts in between, or from
    // counts.
    virtual Status word_similarities(const SimilarityParameters& parameters,
                                     const WeightParameters& weights,
                                     const CooccurrenceShape& shape, const TokenStream& tokens,
                                     std::uint64_t memory, Execution& execution, Thesaurus& answer);
    virtual Status word_similarities(const SimilarityParameters& parameters,
                                     const WeightParameters& weights, const Cooccurrences& counts,
                                     std::uint64_t memory, Execution& execution, Thesaurus& answer);

    /// That of cpp/embeddings/trainer.hpp, which takes at most `memory` bytes of the device's. All
    /// of its functions are called by the device's thread, which destroys it before the device and
    /// runs nothing else meanwhile. `tokens` and `sampling` live as long as the trainer.
    virtual Result<std::unique_ptr<WordTrainer>> word_trainer(const TrainerParameters& parameters,
                                                              const WordSampling& sampling,
                                                              const TokenStream& tokens,
                                                              std::uint64_t memory,
                                                              Execution& execution);

    // Distances of cpp/embeddings/word_movers.hpp, one for each of the pairs, which
    // check_text_pairs() has accepted, and probabilities of
    // cpp/embeddings/sequence_probability.hpp, for sequences that check_sequences() has accepted.
    virtual Status word_movers_distances(const MoversParameters& parameters,
                                         const WordVectors& vectors, const TextPairs& pairs,
                                         std::uint64_t memory, Execution& execution,
                                         std::span<double> distances);
    virtual Status sequence_probabilities(const NextWordModel& model,
                                          const TokenSequences& sequences, std::uint64_t memory,
                                          Execution& execution, SequenceProbabilities& answer);

    /// Gives back what is kept between jobs: there has been none for a while.
    virtual void release_memory() {}
};

}  // namespace gputext
