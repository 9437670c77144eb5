// cpp/thesaurus/feature_weights.hpp - weights of the features of words, defined to the bit
//
// With c the count of <word, relation, neighbor>, and * for the sum over all that are stored
// (which need not be symmetric):
//
//   lin     ln((c - discount) * n(*, relation, *) / (n(word, relation, *) * n(*, relation,
//           neighbor))): the mutual information of the 2015 thesis's equation 3.7, where discount
//           is 0. A discount of 0.95 takes from rare triples what chance gives them.
//   ppmi    the same with the word's and all counts summed over all relations: the relation is a
//           part of the feature. ln((c - discount) * n(*, *, *) / (n(word, *, *) * n(*, relation,
//           neighbor))).
//   count   c - discount
//
// A weight is stored as an integer of 16 bits: for lin and ppmi in units of 2^-11, the nearest, a
// half rounded up; for count in units of 1, rounded alike. What is below 1/2 then is no feature of
// the word (so only positive information counts), what is above 65535 is 65535. Sums of such
// integers do not depend on the order, so that whoever computes gets the same bits.
//
// Doubles in between: c - discount, then times n(..), each rounded; the product of the two
// marginals, rounded; the quotient, rounded; natural_log() of it (cpp/base/natural_functions.hpp),
// which is defined by its operations; times 2048, plus 0.5, and cut off.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"

namespace gputext {

enum class WordWeight : std::uint8_t { lin, ppmi, count };

struct WeightParameters {
    static constexpr double kMostDiscount = 1000;

    WordWeight weight = WordWeight::lin;
    double discount = 0.95;  // from 0 to kMostDiscount
    /// Number of columns that are kept as features, in all relations (rounded up to whole words):
    /// those of the most frequent words, numbers 0 and up, as neighbors; 0 for all. Sums over all
    /// neighbors do not depend on it.
    std::uint64_t features = 0;
};

/// Error: invalid_argument.
Status check_weights(const WeightParameters& parameters);

/// A row for each word: its features, ascending, and what they weigh.
struct WordFeatures {
    CooccurrenceShape shape;
    std::vector<std::uint64_t> begins;   // of each row; words + 1
    std::vector<std::uint32_t> columns;  // of all rows
    std::vector<std::uint16_t> weights;  // above 0
};

/// O(stored counts) time. Errors: invalid_argument, cancelled, out_of_memory.
Result<WordFeatures> weigh_features(const WeightParameters& parameters, const Cooccurrences& counts,
                                    Execution& execution);

/// The units of stored weights: multiplied with them it gives the weights above.
double weight_unit(WordWeight weight);

/// For each stored count its stored weight, 0 where it is no feature.
Result<std::vector<std::uint16_t>> weigh_counts(const WeightParameters& parameters,
                                                const Cooccurrences& counts, Execution& execution);

}  // namespace gputext
