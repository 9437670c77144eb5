// cpp/sets/similar_sets.hpp - all pairs of sets whose similarity is at least a threshold
//
// Two sets that are similar enough have so many tokens in common that one of these is among the
// first few of each, in an order that all sets share: in a set of n tokens that has at least c of
// them in common with any similar one, among the first n - c + 1. With rare tokens first there are
// few sets for such a token, and their sizes leave out most of these.
//
// Sources: Chaudhuri, Ganti and Kaushik 2006, "A primitive operator for similarity joins in data
// cleaning" (prefixes); Bayardo, Ma and Srikant 2007, "Scaling up all pairs similarity search";
// Xiao et al. 2008, "Efficient similarity joins for near duplicate detection" (places of tokens).

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/sets/set_collection.hpp"

namespace gputext {

/// Of two sets of n and m tokens, c of which are common; where tokens have weights, these are their
/// sums. Of an empty set and any other one: 0.
enum class SetMeasure : std::uint8_t {
    jaccard,      // c / (n + m - c)
    containment,  // c / min(n, m)
    cosine,       // c / sqrt(n * m)
    overlap       // c
};

double set_similarity(SetMeasure measure, std::uint64_t n, std::uint64_t m, std::uint64_t common);

struct SimilarSetsParameters {
    SetMeasure measure = SetMeasure::jaccard;
    double threshold = 0.7;  // above 0
    /// With two tables, the first `split` sets are the first one's, and a pair is one of each.
    bool two_tables = false;
    std::size_t split = 0;
    /// With two tables: of each set of the first one only so many pairs, the most similar ones and
    /// of equal ones those whose second set comes first; 0 for all.
    std::size_t nearest = 0;
    std::uint64_t most_pairs = UINT64_MAX;
    /// Bytes that the join may take.
    std::size_t memory_limit = SIZE_MAX;
};

struct SimilarPair {
    std::uint32_t first, second;
    std::uint32_t common;  // tokens
    double similarity;
};

struct SimilarPairs {
    /// By the first and the second set, or the most similar ones of the first set first.
    std::vector<SimilarPair> pairs;
    /// How many there are; where these are more than the most that are wanted, the list is empty.
    std::uint64_t count = 0;
};

/// The pairs with a similarity of at least the threshold, the set that comes first being the first
/// one. Time: O(tokens log tokens), some nanoseconds for each pair of sets with a common token among
/// their first ones, and O(tokens of both sets) for those that may be similar. Memory: 4 bytes a
/// token and 8 for each of the first ones, 28 bytes a distinct token, 32 bytes a set and 1 by thread,
/// 48 bytes a pair. Errors: cancelled; out_of_memory; memory_limit.
Result<SimilarPairs> similar_sets(const SetCollection& sets,
                                  const SimilarSetsParameters& parameters, Execution& execution);

}  // namespace gputext
