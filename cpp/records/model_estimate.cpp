#include "cpp/records/model_estimate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/records/value_levels.hpp"

namespace gputext {
namespace {

constexpr std::size_t kPatternsOfLook = 1 << 12;

/// Sums that an iteration makes of the patterns.
struct ExpectedMatches {
    double pairs = 0;
    std::vector<std::vector<double>> levels;  // [field][level]
};

Status expect(std::span<const PatternCount> patterns, const LinkageModel& model, Stop stop,
              ExpectedMatches& sums) {
    sums.pairs = 0;
    sums.levels.clear();
    for (const FieldModel& field : model.fields)
        sums.levels.emplace_back(field.levels.size(), 0.0);
    for (std::size_t i = 0; i < patterns.size(); ++i) {
        if (i % kPatternsOfLook == kPatternsOfLook - 1 && stop()) return Status::cancelled();
        double match = model.prior, other = 1 - model.prior;
        for (std::size_t f = 0; f < model.fields.size(); ++f) {
            const int level = patterns[i].levels[f];
            if (level == kNullLevel) continue;
            const LevelProbabilities& one = model.fields[f].levels[static_cast<std::size_t>(level)];
            match *= one.m;
            other *= one.u;
        }
        const double matches =
            match == 0 ? 0 : static_cast<double>(patterns[i].pairs) * (match / (match + other));
        sums.pairs += matches;
        for (std::size_t f = 0; f < model.fields.size(); ++f)
            if (patterns[i].levels[f] != kNullLevel)
                sums.levels[f][static_cast<std::size_t>(patterns[i].levels[f])] += matches;
    }
    return {};
}

/// Sets each m, one match with the m of the start model added; the largest change.
double set_m(const ExpectedMatches& sums, const LinkageModel& start, LinkageModel& model) {
    double change = 0;
    for (std::size_t f = 0; f < model.fields.size(); ++f) {
        std::vector<double> parts;
        double whole = 0;
        for (std::size_t level = 0; level < sums.levels[f].size(); ++level) {
            parts.push_back(sums.levels[f][level] + start.fields[f].levels[level].m);
            whole += parts.back();
        }
        for (std::size_t level = 0; level < parts.size(); ++level) {
            double& m = model.fields[f].levels[level].m;
            const double now = parts[level] / whole;
            change = std::max(change, std::abs(now - m));
            m = now;
        }
    }
    return change;
}

/// Sets each u to the share of the pairs that are left without the matches, half a pair added to
/// each level.
void set_u(std::span<const LevelCounts> counts, const ExpectedMatches& matches,
           LinkageModel& model) {
    for (std::size_t f = 0; f < model.fields.size(); ++f) {
        std::vector<double> left;
        double whole = 0;
        for (std::size_t level = 0; level < counts[f].pairs.size(); ++level) {
            const double pairs = static_cast<double>(counts[f].pairs[level]);
            left.push_back(std::max(0.0, pairs - matches.levels[f][level]) + 0.5);
            whole += left.back();
        }
        for (std::size_t level = 0; level < left.size(); ++level)
            model.fields[f].levels[level].u = left[level] / whole;
    }
}

}  // namespace

Result<Convergence> maximize_expectation(std::span<const PatternCount> patterns,
                                         std::uint64_t pairs, const Maximization& parameters,
                                         Stop stop, LinkageModel& model) {
    return status_or_exception([&]() -> Result<Convergence> {
        Convergence found;
        const double all = static_cast<double>(pairs);
        const LinkageModel start = model;
        ExpectedMatches sums;
        while (found.iterations < parameters.most_iterations && !found.converged) {
            ++found.iterations;
            GPUTEXT_TRY(expect(patterns, model, stop, sums));
            found.matches = sums.pairs;
            const double prior = std::min(std::max(sums.pairs, 0.5) / all, 0.5);
            const double change = std::abs(prior - model.prior) / model.prior;
            model.prior = prior;
            found.change = parameters.keep_m ? change : set_m(sums, start, model);
            found.converged = found.change <= parameters.tolerance;
        }
        return found;
    });
}

// ---- The whole estimate ----

namespace {

/// m of the top level in the start model; what is left is the lower levels', in equal parts.
constexpr double kStartOfTop = 0.9;

Status count_levels(const Records& records, Execution& execution, LinkageModel& model,
                    std::vector<LevelCounts>& counts) {
    for (std::size_t f = 0; f < model.fields.size(); ++f) {
        FieldModel& field = model.fields[f];
        const Result<ValueLevels> levels =
            ValueLevels::of(field.comparison, records.fields[f], execution.stop());
        if (!levels.ok()) return levels.status();
        Result<LevelCounts> found = levels->count(records, execution);
        if (!found.ok()) return found.status();
        if (found->compared() == 0)
            return {ErrorCode::invalid_argument,
                    "no pair of records has two values of field \"" + field.comparison.field +
                        "\"",
                    "Leave the field out, or give records that have values in it."};
        const std::size_t others = found->pairs.size() - 1;
        field.levels.assign(others, {(1 - kStartOfTop) / static_cast<double>(others), 0});
        field.levels.push_back({kStartOfTop, 0});
        counts.push_back(*std::move(found));
    }
    ExpectedMatches none;
    for (const LevelCounts& count : counts) none.levels.emplace_back(count.pairs.size(), 0.0);
    set_u(counts, none, model);
    return {};
}

// ---- Pairs at or above training_weight, and those of them that m is estimated from ----

class Candidates {
public:
    /// Finds them in the start model.
    Status find(const LinkageModel& model, const Records& records,
                const EstimateParameters& parameters, Execution& execution,
                PairSearchReport& report);

    /// Ascending.
    const std::vector<PatternCount>& patterns() const { return patterns_; }
    /// Of the pairs that are the best of both their records; ties count.
    Status best(std::size_t rows, Stop stop, std::vector<PatternCount>& patterns) const;

private:
    struct Candidate {
        std::uint32_t first, second;
        std::uint32_t pattern;  // the worker's number of it
    };
    struct Worker {
        std::vector<Candidate> pairs;
        std::map<Pattern, std::uint32_t> numbers;
        std::vector<std::pair<double, Pattern>> patterns;  // with their weights
        std::size_t counted = 0;                           // pairs, in the budget
    };

    std::vector<Worker> workers_;
    std::vector<PatternCount> patterns_;
};

Status Candidates::find(const LinkageModel& model, const Records& records,
                        const EstimateParameters& parameters, Execution& execution,
                        PairSearchReport& report) {
    constexpr std::size_t kPairsOfStep = 1 << 12;
    MemoryBudget budget(parameters.memory_limit);
    workers_.resize(execution.threads());
    const std::size_t fields = model.fields.size();
    const auto take = [&](const FoundPair& pair, unsigned number) -> Status {
        Worker& worker = workers_[number];
        if (worker.pairs.size() == worker.counted) {
            // A vector has its elements twice while it grows.
            GPUTEXT_TRY(
                budget.take(2 * kPairsOfStep * sizeof(Candidate), "the pairs to train with"));
            worker.counted += kPairsOfStep;
        }
        Pattern pattern{};
        std::copy_n(pair.levels, fields, pattern.begin());
        const auto [at, is_new] = worker.numbers.try_emplace(
            pattern, static_cast<std::uint32_t>(worker.patterns.size()));
        if (is_new) worker.patterns.emplace_back(pair.weight, pattern);
        worker.pairs.push_back({pair.first, pair.second, at->second});
        return {};
    };
    GPUTEXT_TRY(find_record_pairs(
        model, records,
        {.min_weight = parameters.training_weight,
         .keys = parameters.keys,
         .memory_limit = parameters.memory_limit},
        execution, take, report));
    std::map<Pattern, std::uint64_t> counts;
    for (const Worker& worker : workers_) {
        std::vector<std::uint64_t> of_pattern(worker.patterns.size());
        for (const Candidate& pair : worker.pairs) ++of_pattern[pair.pattern];
        for (std::size_t i = 0; i < of_pattern.size(); ++i)
            counts[worker.patterns[i].second] += of_pattern[i];
    }
    for (const auto& [pattern, pairs] : counts) patterns_.push_back({pattern, pairs});
    return execution.checkpoint(0);
}

Status Candidates::best(std::size_t rows, Stop stop, std::vector<PatternCount>& patterns) const {
    constexpr std::size_t kLook = 1 << 18;
    std::vector<double> best(rows, -std::numeric_limits<double>::infinity());
    std::size_t done = 0;
    for (const Worker& worker : workers_)
        for (const Candidate& pair : worker.pairs) {
            if (++done % kLook == 0 && stop()) return Status::cancelled();
            const double weight = worker.patterns[pair.pattern].first;
            best[pair.first] = std::max(best[pair.first], weight);
            best[pair.second] = std::max(best[pair.second], weight);
        }
    std::map<Pattern, std::uint64_t> counts;
    for (const Worker& worker : workers_) {
        std::vector<std::uint64_t> of_pattern(worker.patterns.size());
        for (const Candidate& pair : worker.pairs) {
            if (++done % kLook == 0 && stop()) return Status::cancelled();
            const double weight = worker.patterns[pair.pattern].first;
            of_pattern[pair.pattern] +=
                weight == best[pair.first] && weight == best[pair.second];
        }
        for (std::size_t i = 0; i < of_pattern.size(); ++i)
            if (of_pattern[i] > 0) counts[worker.patterns[i].second] += of_pattern[i];
    }
    for (const auto& [pattern, pairs] : counts) patterns.push_back({pattern, pairs});
    return {};
}

/// m of each level as the matches have it.
Status count_m(std::span<const MatchedPair> matches, const Records& records, Stop stop,
               LinkageModel& model) {
    ExpectedMatches sums;
    for (std::size_t f = 0; f < model.fields.size(); ++f) {
        const FieldValues& values = records.fields[f];
        const Result<ValueLevels> levels =
            ValueLevels::of(model.fields[f].comparison, values, stop);
        if (!levels.ok()) return levels.status();
        ValueLevels::Comparer comparer(*levels);
        std::vector<double>& parts = sums.levels.emplace_back(model.fields[f].levels.size(), 0.0);
        for (const auto& [first, second] : matches) {
            const std::uint32_t a = values.of_rows()[first], b = values.of_rows()[second];
            if (a == kNullValue || b == kNullValue) continue;
            int level = 0;
            GPUTEXT_TRY(comparer.level(a, b, stop, level));
            ++parts[static_cast<std::size_t>(level)];
        }
    }
    set_m(sums, LinkageModel(model), model);
    return {};
}

}  // namespace

Result<ModelEstimate> estimate_model(LinkageModel start, const Records& records,
                                     const EstimateParameters& parameters, Execution& execution) {
    return status_or_exception([&]() -> Result<ModelEstimate> {
        ModelEstimate estimate;
        estimate.model = std::move(start);
        estimate.pairs = records.pairs();
        if (estimate.pairs == 0)
            return Status(ErrorCode::invalid_argument,
                          records.two_tables ? "there are no records in one of the tables"
                                             : "there are no two records to compare");
        std::vector<LevelCounts> counts;
        GPUTEXT_TRY(count_levels(records, execution, estimate.model, counts));
        // A record of the larger table has a match in the other one, about.
        const std::size_t larger = records.two_tables
                                       ? std::max(records.split, records.rows - records.split)
                                       : records.rows;
        estimate.model.prior = std::min(0.5, 1 / static_cast<double>(larger));
        const Stop stop = execution.stop();
        // A pattern has one weight then.
        LinkageModel without_frequencies = estimate.model;
        for (FieldModel& field : without_frequencies.fields) field.term_frequencies = false;
        Candidates candidates;
        GPUTEXT_TRY(candidates.find(without_frequencies, records, parameters, execution,
                                    estimate.search));
        const auto maximize = [&](std::span<const PatternCount> patterns, bool keep_m) -> Status {
            Maximization maximization = parameters.maximization;
            maximization.keep_m = keep_m;
            Result<Convergence> found = maximize_expectation(patterns, estimate.pairs,
                                                             maximization, stop, estimate.model);
            if (!found.ok()) return found.status();
            // What the first one did is what may take long, and is told.
            if (estimate.convergence.iterations == 0) estimate.convergence = *found;
            estimate.convergence.matches = found->matches;
            return {};
        };
        if (parameters.matches.empty()) {
            std::vector<PatternCount> training;
            GPUTEXT_TRY(candidates.best(records.rows, stop, training));
            for (const PatternCount& pattern : training) estimate.training_pairs += pattern.pairs;
            GPUTEXT_TRY(maximize(training, false));
        } else {
            estimate.training_pairs = parameters.matches.size();
            GPUTEXT_TRY(count_m(parameters.matches, records, stop, estimate.model));
        }
        GPUTEXT_TRY(maximize(candidates.patterns(), true));
        ExpectedMatches matches;
        GPUTEXT_TRY(expect(candidates.patterns(), estimate.model, stop, matches));
        set_u(counts, matches, estimate.model);
        GPUTEXT_TRY(maximize(candidates.patterns(), true));
        return estimate;
    });
}

}  // namespace gputext
