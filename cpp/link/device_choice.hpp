// cpp/link/device_choice.hpp - estimates whether a job is large enough to be faster on a device
//
// Used by gputext.device = auto. A device pays when it saves more time than it takes to get there:
// a constant time, and a time for each byte.

#pragma once

#include <cstdint>

#include "cpp/base/vectors.hpp"
#include "cpp/documents/near_duplicate_cost.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "cpp/embeddings/trainer.hpp"
#include "cpp/embeddings/word_movers.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"

namespace gputext {

/// Size of a job of any operator, before it runs.
struct JobSize {
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;  // of the input
    double cpu_seconds = 0;   // as the operator estimates it
    /// Seconds that a device takes, where they depend on more than the bytes.
    double device_seconds = 0;
    /// Bytes of the input that are resident: devices copy them once, for all jobs.
    std::uint64_t resident_bytes = 0;
};

bool worth_a_device(const JobSize& size);

/// About what near_duplicates() takes on so many threads, by cpp/documents/near_duplicate_cost.hpp.
double near_duplicates_cpu_seconds(NearDuplicateMode mode, const NearDuplicateSeconds& seconds,
                                   unsigned threads);

/// About what knn() takes on so many threads, from rates on random vectors. A search
/// for many neighbors, or whose filter leaves little out, takes more.
double knn_cpu_seconds(const Vectors& queries, const Vectors& items, unsigned threads);

/// About what keyed_knn() takes where so many pairs have equal keys, and what keyed_term_knn()
/// takes.
double keyed_knn_cpu_seconds(const Vectors& queries, const Vectors& items, double pairs,
                             unsigned threads);
double keyed_term_knn_cpu_seconds(const Vectors& queries, const Vectors& items, double pairs,
                                  unsigned threads);

/// About what term_knn() takes on so many threads, by the number of times that a query and
/// an item share a term, which is estimated from some of both. O(1): about a million elements are
/// read.
double term_knn_cpu_seconds(const Vectors& queries, const Vectors& items, unsigned threads);

/// About what looking so many words up in a dictionary of so many bytes takes on so many threads.
/// Words that are often the same take less.
double word_lookup_cpu_seconds(std::uint64_t words, std::uint64_t dictionary_bytes,
                               unsigned threads);

/// About what build_trie() takes for so many words, of so many bytes, in random order.
double trie_build_cpu_seconds(std::uint64_t words, std::uint64_t bytes, unsigned threads);

/// About what counting, weighing and comparing words takes, by rates on English texts: the
/// comparison's part grows with how often words share features, which nobody knows before.
double word_similarity_cpu_seconds(std::uint64_t tokens, const CooccurrenceShape& shape,
                                   unsigned threads);
/// About what weighing and comparing takes when so many counts of words are given.
double counted_similarity_cpu_seconds(std::uint64_t counts, unsigned threads);

/// About what a training on so many tokens takes, of which half are left out of each epoch as
/// frequent ones.
double word2vec_cpu_seconds(const TrainerParameters& parameters, std::uint64_t tokens,
                            unsigned threads);
/// About what the steps of a training take on a device however few windows they have.
double word2vec_device_seconds(const TrainerParameters& parameters, std::uint64_t tokens);

/// About what word_movers_distances() takes for texts of some words each; those of hundreds that
/// have nothing in common take more. O(pairs).
double word_movers_cpu_seconds(MoversMethod method, const TextPairs& pairs, std::size_t dimensions,
                               unsigned threads);

/// About what sequence_probabilities() takes for so many tokens, if all of them are different or
/// each word of the model comes.
double sequence_cpu_seconds(std::uint64_t words, std::uint64_t tokens, std::size_t dimensions,
                            unsigned threads);

/// About what cosine_similarities() takes.
double similarities_cpu_seconds(const Vectors& items, unsigned threads);

}  // namespace gputext
