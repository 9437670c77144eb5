// cpp/thesaurus/word_similarity.hpp - thesaurus: for each word the words with the most similar
// features
//
// With a[f] what feature f of a word weighs (cpp/thesaurus/feature_weights.hpp), as integers, and
// sums over the features that both words have:
//
//   lin      sum of (a[f] + b[f]) / (sum of all a + sum of all b): the 2015 thesis's equation 3.8
//   cosine   sum of a[f] * b[f] / sqrt(sum of all a^2 * sum of all b^2)
//   jaccard  shared features / (features of a + features of b - shared features)
//
// Sums are exact integers below 2^53 (or the operator refuses), made doubles; a product of two
// sums, a root and a quotient are rounded once each. A word's neighbors are the other words with a
// similarity above 0, ordered by (similarity descending, number ascending): the same bits on the
// CPU and on any number of devices.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/thesaurus/feature_weights.hpp"

namespace gputext {

enum class WordMeasure : std::uint8_t { lin, cosine, jaccard };

struct SimilarityParameters {
    WordMeasure measure = WordMeasure::lin;
    std::uint32_t top_k = 20;  // at least 1
    /// Words whose neighbors are wanted, first .. end - 1: the lists of other words are empty.
    std::uint32_t first = 0, end = UINT32_MAX;
    /// Bytes that the CPU's search may take beside the features, the answer and
    /// similarity_bytes()'s few a word and a column. With less, lists of fewer words are made at a
    /// time.
    std::size_t memory_limit = std::size_t{1} << 30;
    Simd simd = best_simd();
};

/// For each word its nearest ones, the best first.
struct Thesaurus {
    std::vector<std::uint64_t> begins;  // of each word's; words + 1
    std::vector<std::uint32_t> neighbors;
    std::vector<double> similarities;
};

/// Time: for every feature half the square of the number of words that have it, 1.3e9 a second and
/// more on one core. Errors: invalid_argument, also where the squares of a word's weights add up to
/// 2^53 or more with cosine; cancelled; out_of_memory.
Result<Thesaurus> word_similarities(const SimilarityParameters& parameters,
                                    const WordFeatures& features, Execution& execution);

/// Bytes that the search takes at most beside `stored` features, the answer included.
std::uint64_t similarity_bytes(const SimilarityParameters& parameters,
                               const CooccurrenceShape& shape, std::uint64_t stored);

}  // namespace gputext
