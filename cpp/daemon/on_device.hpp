// cpp/daemon/on_device.hpp - the functions that a device may have for operators
//
// One struct for each function of an operator that there are kernels for; cpp/daemon/device.hpp
// says what such a function has to observe. on_host(), the same on the host's threads, is defined
// beside the operator's job. kernels/daemon/operators.cpp gives the functions to GPUs. An operator
// without kernels has none: its job computes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/base/words.hpp"
#include "cpp/bits/nearest_bits.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/documents.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"
#include "cpp/embeddings/sequence_probability.hpp"
#include "cpp/embeddings/trainer.hpp"
#include "cpp/embeddings/word_movers.hpp"
#include "cpp/hnsw/links.hpp"
#include "cpp/knn/cluster_assignment.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/knn/keyed_knn.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/strings/nearest_strings.hpp"
#include "cpp/terms/knn.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"
#include "cpp/thesaurus/word_similarity.hpp"
#include "cpp/trie/trie.hpp"

namespace gputext {

/// Seconds of one processor, as they are estimated, that are worth a device of their own: some
/// milliseconds of a GPU. A GPU compares signatures faster by far: so many take it some 150 ms, less
/// than which all devices take to get the documents. Fake devices, which are threads, do not.
struct NearDuplicateParts {
    static constexpr double least = 1;
    inline static double least_of_signatures = 7500;
};

/// near_duplicates() of cpp/documents/near_duplicates.hpp.
struct NearDuplicatesOnDevice {
    using Function = Result<NearDuplicates>(const NearDuplicateParameters& parameters,
                                            const Documents& documents, GivenSignatures signatures,
                                            std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// near_pairs() of cpp/documents/near_duplicates_parts.hpp.
struct NearPairsOnDevice {
    using Function = Result<PartPairs>(const NearDuplicateParameters& parameters,
                                       const DistinctDocuments& documents, const PairPart& part,
                                       std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// ctph_signatures() of the same.
struct SignaturesOnDevice {
    using Function = Result<std::vector<Ctph>>(const Documents& documents, std::size_t longest,
                                               std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// knn() of cpp/knn/knn.hpp.
/// The items may be vectors that have to be awaited before the host reads them: await_elements().
struct KnnOnDevice {
    using Function = Result<Neighbors>(const KnnParameters& parameters, const Vectors& queries,
                                       const Vectors& items, const RowKeys& keys,
                                       std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// keyed_knn() of cpp/knn/keyed_knn.hpp.
/// The neighbors of queries within groups that were made of rows by group_by_key(), or of some of
/// the queries of these. The answer has all queries, and none for those that are in no group.
struct KeyedKnnOnDevice {
    using Function = Result<Neighbors>(const KnnParameters& parameters, const Vectors& queries,
                                       const Vectors& items, const KeyGroups& groups,
                                       const RowKeys& excluded, std::uint64_t memory,
                                       Execution& execution);
    static Function on_host;
};

/// term_knn() of cpp/terms/knn.hpp.
struct TermKnnOnDevice {
    using Function = Result<Neighbors>(const TermKnnParameters& parameters,
                                       std::span<const double> factors, const Vectors& queries,
                                       const Vectors& items, const RowKeys& keys,
                                       std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// nearest_strings() of cpp/strings/nearest_strings.hpp.
struct NearestStringsOnDevice {
    using Function = Result<Neighbors>(const NearestStringsParameters& parameters,
                                       const Strings& queries, const Strings& items,
                                       const MatchKeys& match, const RowKeys& excluded,
                                       std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// nearest_bits() of cpp/bits/nearest_bits.hpp.
struct NearestBitsOnDevice {
    using Function = Result<Neighbors>(const NearestBitsParameters& parameters,
                                       const Vectors& queries, const Vectors& items,
                                       const MatchKeys& match, const RowKeys& excluded,
                                       std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// cosine_similarities() of cpp/knn/cosine_similarity.hpp.
struct CosineSimilarityOnDevice {
    using Function = Result<std::vector<double>>(const Vectors& query, const Vectors& items,
                                                 std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// A WithAssignment of cpp/knn/cluster_assignment.hpp, for SharedKMeans of
/// cpp/knn/shared_k_means.hpp.
struct KMeansOnDevice {
    using Function = Status(const AssignmentTask& task, const UseAssignment& use,
                            std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// link_to_earlier() of cpp/hnsw/links.hpp, and link_back().
struct HnswLinksOnDevice {
    using Function = Status(const HnswLinkParameters& parameters, const LayerValues& values,
                            const LayerRows& rows, const HnswLinks& links, std::uint64_t memory,
                            Execution& execution);
    static Function on_host;
};
struct HnswLinksBackOnDevice {
    using Function = Status(const HnswLinkParameters& parameters, const Vectors& values,
                            const HnswLinks& links, const LayerRows& rows,
                            std::span<std::uint32_t> neighbors, std::uint64_t memory,
                            Execution& execution);
    static Function on_host;
};

/// Both of all rows: writes their neighbors, as link_layer() of the same.
struct HnswLayerOnDevice {
    using Function = Status(const HnswLinkParameters& parameters, const LayerValues& values,
                            std::span<std::uint32_t> neighbors, std::uint64_t memory,
                            Execution& execution);
    static Function on_host;
};

/// lookup_words() of cpp/trie/trie.hpp.
/// codes[i] becomes the code of words[i]. A broken dictionary is an error as in open_trie(). A
/// device may keep a dictionary that words were looked up in, as long as nothing else needs the
/// memory.
struct WordLookupOnDevice {
    using Function = Status(std::span<const std::uint8_t> dictionary, const Words& words,
                            std::uint64_t memory, Execution& execution,
                            std::span<std::uint32_t> codes);
    static Function on_host;
};

/// build_trie() of cpp/trie/trie.hpp.
struct TrieBuildOnDevice {
    using Function = Result<std::vector<std::uint8_t>>(TrieStructure structure, const Words& words,
                                                       std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// word_similarities() of cpp/thesaurus/word_similarity.hpp.
/// Counts (cpp/thesaurus/cooccurrences.hpp) and compares in one call, so that a device need not
/// return the counts in between.
struct WordSimilarityOnDevice {
    using Function = Result<Thesaurus>(const SimilarityParameters& parameters,
                                       const WeightParameters& weights,
                                       const CooccurrenceShape& shape, const TokenStream& tokens,
                                       std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// From counts.
struct CountedSimilarityOnDevice {
    using Function = Result<Thesaurus>(const SimilarityParameters& parameters,
                                       const WeightParameters& weights, const Cooccurrences& counts,
                                       std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// The trainer of cpp/embeddings/trainer.hpp.
/// The trainer takes at most `memory` bytes of the device's. All of its functions are called by the
/// device's thread, which destroys it before the device. `tokens` and `sampling` live as long as
/// the trainer.
struct Word2VecOnDevice {
    using Function = Result<std::unique_ptr<WordTrainer>>(const TrainerParameters& parameters,
                                                          const WordSampling& sampling,
                                                          const TokenStream& tokens,
                                                          std::uint64_t memory,
                                                          Execution& execution);
    static Function on_host;
};

/// word_movers_distances() of cpp/embeddings/word_movers.hpp.
/// One distance for each of the pairs, which check_text_pairs() has accepted.
struct WordMoversOnDevice {
    using Function = Status(const MoversParameters& parameters, const WordVectors& vectors,
                            const TextPairs& pairs, std::uint64_t memory, Execution& execution,
                            std::span<double> distances);
    static Function on_host;
};

/// context_sums() of cpp/embeddings/sequence_probability.hpp.
struct ContextSumsOnDevice {
    using Function = Result<std::vector<ContextSum>>(const NextWordModel& model,
                                                     std::span<const std::uint32_t> contexts,
                                                     std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// sequence_probabilities() of the same, for sequences that check_sequences() has accepted. Without
/// sums it finds them itself.
struct SequenceProbabilityOnDevice {
    using Function = Result<SequenceProbabilities>(const NextWordModel& model,
                                                   const TokenSequences& sequences,
                                                   std::span<const ContextSum> sums,
                                                   std::uint64_t memory, Execution& execution);
    static Function on_host;
};

}  // namespace gputext
