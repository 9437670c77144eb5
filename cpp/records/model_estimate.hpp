// cpp/records/model_estimate.hpp - estimates a linkage model from the records themselves
//
// u is counted over all pairs, exactly: nearly none of them match. m is estimated by expectation
// maximization over the patterns of levels of the training pairs. A training pair has a match weight
// of at least training_weight in a start model, and no other pair of its first or of its second
// record has a higher one. Without that, people of one household, who agree in surname and address,
// are more than the matches, and become what m describes: a record's best partner is the same
// person, the household comes second. The prior is then estimated over all pairs at or above
// training_weight; pairs below are taken for no matches. In the end the matches, as far as they are
// expected, are taken out of the counts for u, and the prior is estimated once more.
//
// Sources: Winkler 1988, "Using the EM algorithm for weight computation in the Fellegi-Sunter model
// of record linkage"; Dempster, Laird and Rubin 1977.

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/records/field_values.hpp"
#include "cpp/records/linkage_model.hpp"
#include "cpp/records/record_pairs.hpp"

namespace gputext {

// ---- Expectation maximization ----

/// The levels of a pair in each field; those beyond the fields are 0.
using Pattern = std::array<std::int8_t, kMostFields>;

struct PatternCount {
    Pattern levels;
    std::uint64_t pairs;
};

struct Maximization {
    unsigned most_iterations = 500;
    /// It has converged when no m changed by more, or, where m stays, the prior by no larger share
    /// of itself.
    double tolerance = 1e-9;
    /// Whether m stays as it is, and the prior alone is estimated.
    bool keep_m = false;
};

struct Convergence {
    unsigned iterations = 0;
    bool converged = false;
    double change = 0;   // in the last iteration
    double matches = 0;  // pairs that match, as expected
};

/// Improves m and the prior of the model, whose u stays. Patterns ascend; `pairs` are all pairs,
/// and those that no pattern counts do not match. With r the probability that a pair of a pattern
/// matches, the prior becomes the sum of r over the pairs, as a share of all: that of half a pair at
/// least, and 1/2 at most. With n the sum of r over the pairs that are not null in a field, c that
/// of those of one of its levels, and s the m that it had in the beginning, m of this level becomes
/// (c + s) / (n + 1). Sums are in the order of the patterns and the fields, in double precision: the
/// same bits everywhere.
/// O(patterns * fields) time an iteration. Error: cancelled.
Result<Convergence> maximize_expectation(std::span<const PatternCount> patterns,
                                         std::uint64_t pairs, const Maximization& parameters,
                                         Stop stop, LinkageModel& model);

// ---- The whole estimate ----

using MatchedPair = std::pair<std::uint32_t, std::uint32_t>;

struct EstimateParameters {
    double training_weight = 2;
    /// Bytes that pairs at or above it may take, 24 for each as their lists grow; and as in
    /// PairSearchParameters once more.
    std::size_t memory_limit = SIZE_MAX;
    Maximization maximization;
    /// Pairs that are known to match: m is counted from them instead. Each once.
    std::span<const MatchedPair> matches;
    /// As in PairSearchParameters, of the training pairs.
    std::span<const RecordKey> keys;
};

struct ModelEstimate {
    LinkageModel model;
    Convergence convergence;
    std::uint64_t pairs = 0;           // of the records
    std::uint64_t training_pairs = 0;  // that m was estimated from
    PairSearchReport search;
};

/// The start model has its comparisons and term frequencies, which play no part here; no levels.
/// Time: that of ValueLevels::count() for each field and of find_record_pairs(). Errors: theirs;
/// memory_limit; invalid_argument where there are no two records, or a field that no pair has two
/// values of.
Result<ModelEstimate> estimate_model(LinkageModel start, const Records& records,
                                     const EstimateParameters& parameters, Execution& execution);

}  // namespace gputext
