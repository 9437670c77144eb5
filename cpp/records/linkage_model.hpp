// cpp/records/linkage_model.hpp - what two records' levels say about their being a match
//
// m is the probability of a level among pairs that match, u among pairs that do not. The match
// weight of a level is log2(m / u), that of a null 0, and that of a pair log2 of the prior odds and
// the sum of the weights of its fields. So the odds that a pair matches are 2 to its match weight.
//
// With term frequencies, the u of equal values is the frequency of the value itself: the share of
// records that have it, of those whose field is not null.
//
// Sources: Fellegi and Sunter 1969, "A theory for record linkage"; Winkler 2000, "Frequency-based
// matching in Fellegi-Sunter model of record linkage". Terms as Splink has them.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/records/comparison.hpp"
#include "cpp/records/field_values.hpp"

namespace gputext {

struct LevelProbabilities {
    double m = 0, u = 0;  // above 0 and at most 1

    double match_weight() const;
};

struct FieldModel {
    FieldComparison comparison;
    bool term_frequencies = false;           // the first condition is "exact" then
    std::vector<LevelProbabilities> levels;  // [level], from 0
};

struct LinkageModel {
    double prior = 0;  // the probability that a pair matches, above 0 and below 1
    std::vector<FieldModel> fields;

    double prior_weight() const;
};

/// invalid_argument for probabilities that are outside their range, a field without all levels, no
/// fields, more than kMostFields, or term frequencies of a field whose first condition is another.
Status check_model(const LinkageModel& model);

/// The probability that pairs of that match weight match.
double match_probability(double match_weight);

/// The match weights of one field.
class FieldWeights {
public:
    /// O(rows).
    FieldWeights(const FieldModel& model, const FieldValues& values);

    /// Of two values of that level: kNullLevel where one is null. `value` is both values, where
    /// they are equal.
    double of(int level) const { return level == kNullLevel ? 0 : of_level_[index(level)]; }
    double of_equal(std::uint32_t value, int level) const {
        return by_frequency_.empty() ? of(level) : by_frequency_[value];
    }
    bool term_frequencies() const { return !by_frequency_.empty(); }

private:
    static std::size_t index(int level) { return static_cast<std::size_t>(level); }

    std::vector<double> of_level_;
    std::vector<double> by_frequency_;  // of equal values, with term frequencies
};

}  // namespace gputext
