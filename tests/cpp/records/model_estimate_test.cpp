#include "cpp/records/model_estimate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "cpp/records/value_levels.hpp"
#include "tests/support/random_records.hpp"
#include "tests/support/test_size.hpp"

namespace gputext {
namespace {

using testing::plain_level;
using testing::PlainField;
using testing::PlainValue;
using testing::RandomNames;
using testing::RandomRecords;
using testing::string_of;

using Counts = std::map<std::vector<int>, double>;

/// Expectation maximization as it is written down, in long double.
struct PlainMaximization {
    long double prior;
    bool keep_m = false;
    std::vector<std::vector<long double>> m, u, start, matches;

    explicit PlainMaximization(const LinkageModel& model) : prior(model.prior) {
        for (const FieldModel& field : model.fields) {
            m.emplace_back();
            u.emplace_back();
            for (const LevelProbabilities& level : field.levels) {
                m.back().push_back(level.m);
                u.back().push_back(level.u);
            }
        }
        start = m;
    }

    void iterate(const Counts& counts, long double pairs) {
        std::vector<std::vector<long double>> sums(m.size());
        for (std::size_t f = 0; f < m.size(); ++f) sums[f].resize(m[f].size());
        long double all = 0;
        for (const auto& [levels, count] : counts) {
            long double odds = prior / (1 - prior);
            for (std::size_t f = 0; f < m.size(); ++f)
                if (levels[f] >= 0)
                    odds *= m[f][static_cast<std::size_t>(levels[f])] /
                            u[f][static_cast<std::size_t>(levels[f])];
            const long double matching = count * odds / (1 + odds);
            all += matching;
            for (std::size_t f = 0; f < m.size(); ++f)
                if (levels[f] >= 0) sums[f][static_cast<std::size_t>(levels[f])] += matching;
        }
        prior = std::min(std::max(all, 0.5L) / pairs, 0.5L);
        matches = sums;
        if (keep_m) return;
        for (std::size_t f = 0; f < m.size(); ++f) {
            long double whole = 0;
            for (const long double part : sums[f]) whole += part;
            for (std::size_t l = 0; l < m[f].size(); ++l)
                m[f][l] = (sums[f][l] + start[f][l]) / (whole + 1);
        }
    }
};

/// Persons, and behind them those who come twice, a third, with errors; some of these a third time.
struct People {
    PlainField name{FieldKind::text}, city{FieldKind::text}, birth{FieldKind::number};
    std::vector<MatchedPair> matches;
    std::size_t rows = 0;

    People(RandomNames& random, std::size_t persons, bool thrice = false) {
        const std::vector<std::string> cities = {"berlin", "bonn", "bremen", "jena", "kiel", "ulm"};
        std::vector<std::function<void()>> copies;
        for (std::size_t person = 0; person < persons; ++person) {
            std::string who;
            for (int i = 0; i < 8; ++i) who += static_cast<char>('a' + random.below(26));
            std::string where = cities[random.below(cities.size())];
            double when = static_cast<double>(random.below(20000));
            append(who, where, when, random);
            if (random.below(3) != 0) continue;
            if (random.below(4) == 0) who[random.below(8)] = 'x';
            if (random.below(8) == 0) where = cities[random.below(cities.size())];
            if (random.below(10) == 0) ++when;
            const bool again = thrice && random.below(2) == 0;
            copies.push_back([=, this, &random] {
                for (int copy = 0; copy <= again; ++copy) {
                    matches.emplace_back(person, rows);
                    append(who, where, when + copy, random);
                }
            });
        }
        for (const auto& copy : copies) copy();
    }

    std::vector<FieldValues> values() const {
        std::vector<FieldValues> values;
        values.push_back(name.values());
        values.push_back(city.values());
        values.push_back(birth.values());
        return values;
    }

    static LinkageModel start() {
        LinkageModel model;
        for (const char* text : {"name: exact, levenshtein <= 1", "city: exact",
                                 "birth: exact, within 1"})
            model.fields.push_back({*read_comparison(text), false, {}});
        return model;
    }

private:
    void append(const std::string& who, const std::string& where, double when,
                RandomNames& random) {
        const auto text = [&](const std::string& value) -> std::optional<PlainValue> {
            if (random.below(20) == 0) return std::nullopt;
            return PlainValue{string_of(value.c_str()), 0, {}};
        };
        name.append(text(who));
        city.append(text(where));
        birth.append(PlainValue{{}, when, {}});
        ++rows;
    }
};

TEST(ModelEstimate, IsThatOfThePlainComputation) {
    RandomNames random;
    const std::size_t rounds = std::max<std::size_t>(2, testing::rounds<std::size_t>(4));
    for (std::size_t round = 0; round < rounds; ++round) {
        const bool two_tables = round % 2 == 1;
        const People people(random, 150, true);
        const std::vector<FieldValues> values = people.values();
        const std::size_t split = 150;  // more than half
        const Records records{values, people.rows, two_tables, split};
        EstimateParameters parameters;
        parameters.maximization.most_iterations = 7;
        parameters.maximization.tolerance = -1;  // never reached
        Execution execution(2);
        const Result<ModelEstimate> found =
            estimate_model(People::start(), records, parameters, execution);
        ASSERT_TRUE(found.ok()) << found.status().message();

        // The levels of all pairs, u, and the weights in the start model.
        const PlainField* const fields[] = {&people.name, &people.city, &people.birth};
        std::map<std::pair<std::size_t, std::size_t>, std::vector<int>> all;
        std::vector<std::vector<double>> levels(3);
        LinkageModel model = People::start();
        for (std::size_t f = 0; f < 3; ++f)
            levels[f].resize(model.fields[f].comparison.conditions.size() + 1);
        for (std::size_t a = 0; a < people.rows; ++a)
            for (std::size_t b = a + 1; b < people.rows; ++b) {
                if (two_tables && (a >= split || b < split)) continue;
                for (std::size_t f = 0; f < 3; ++f) {
                    const int level = plain_level(model.fields[f].comparison, *fields[f], a, b);
                    all[{a, b}].push_back(level);
                    if (level >= 0) ++levels[f][static_cast<std::size_t>(level)];
                }
            }
        model.prior = 1 / static_cast<double>(two_tables ? split : people.rows);
        const auto set_u = [&](const std::vector<std::vector<long double>>& matches, auto set) {
            for (std::size_t f = 0; f < 3; ++f) {
                std::vector<long double> left;
                long double whole = 0;
                for (std::size_t l = 0; l < levels[f].size(); ++l) {
                    left.push_back(
                        0.5L +
                        std::max(0.0L, levels[f][l] - (matches.empty() ? 0.0L : matches[f][l])));
                    whole += left.back();
                }
                for (std::size_t l = 0; l < left.size(); ++l) set(f, l, left[l] / whole);
            }
        };
        set_u({}, [&](std::size_t f, std::size_t l, long double u) {
            const std::size_t size = levels[f].size();
            model.fields[f].levels.push_back(
                {l + 1 == size ? 0.9 : (1 - 0.9) / static_cast<double>(size - 1),
                 static_cast<double>(u)});
        });
        const auto weight_of = [&](const std::vector<int>& pattern) {
            double weight = model.prior_weight();
            for (std::size_t f = 0; f < 3; ++f)
                if (pattern[f] >= 0)
                    weight += model.fields[f]
                                  .levels[static_cast<std::size_t>(pattern[f])]
                                  .match_weight();
            return weight;
        };
        std::vector<double> best(people.rows, 0);
        for (const auto& [pair, pattern] : all)
            for (const std::size_t row : {pair.first, pair.second})
                best[row] = std::max(best[row], weight_of(pattern));
        Counts candidates, training;
        double training_pairs = 0;
        for (const auto& [pair, pattern] : all) {
            const double weight = weight_of(pattern);
            if (weight < parameters.training_weight) continue;
            ++candidates[pattern];
            if (weight != best[pair.first] || weight != best[pair.second]) continue;
            ++training[pattern];
            ++training_pairs;
        }
        EXPECT_EQ(found->training_pairs, static_cast<std::uint64_t>(training_pairs));

        // All three run their seven iterations, which no tolerance ends.
        PlainMaximization plain(model);
        const auto pairs = static_cast<long double>(records.pairs());
        for (int i = 0; i < 7; ++i) plain.iterate(training, pairs);
        plain.keep_m = true;
        for (int i = 0; i < 7; ++i) plain.iterate(candidates, pairs);
        PlainMaximization last = plain;
        last.iterate(candidates, pairs);  // for its sums: those of the prior before it
        set_u(last.matches, [&](std::size_t f, std::size_t l, long double u) { plain.u[f][l] = u; });
        for (int i = 0; i < 7; ++i) plain.iterate(candidates, pairs);
        EXPECT_NEAR(found->model.prior / static_cast<double>(plain.prior), 1, 1e-12);
        for (std::size_t f = 0; f < 3; ++f)
            for (std::size_t l = 0; l < plain.m[f].size(); ++l) {
                EXPECT_NEAR(found->model.fields[f].levels[l].m, static_cast<double>(plain.m[f][l]),
                            1e-12);
                EXPECT_NEAR(found->model.fields[f].levels[l].u, static_cast<double>(plain.u[f][l]),
                            1e-12);
            }
    }
}

TEST(ModelEstimate, IsNearTheTruth) {
    RandomNames random;
    const People people(random, 2000);
    const std::vector<FieldValues> values = people.values();
    const Records records{values, people.rows, false, 0};
    Execution execution(2);
    EstimateParameters parameters;
    const Result<ModelEstimate> found =
        estimate_model(People::start(), records, parameters, execution);
    ASSERT_TRUE(found.ok()) << found.status().message();
    EXPECT_TRUE(found->convergence.converged);
    const double matches = static_cast<double>(people.matches.size());
    EXPECT_NEAR(found->convergence.matches / matches, 1, 0.1);
    parameters.matches = people.matches;
    const Result<ModelEstimate> counted =
        estimate_model(People::start(), records, parameters, execution);
    ASSERT_TRUE(counted.ok()) << counted.status().message();
    for (std::size_t f = 0; f < 3; ++f)
        for (std::size_t l = 0; l < found->model.fields[f].levels.size(); ++l)
            EXPECT_NEAR(found->model.fields[f].levels[l].m, counted->model.fields[f].levels[l].m,
                        0.05)
                << f << ' ' << l;
}

TEST(ModelEstimate, CountsMOfKnownMatches) {
    RandomNames random;
    const People people(random, 300);
    const std::vector<FieldValues> values = people.values();
    const Records records{values, people.rows, false, 0};
    Execution execution(1);
    EstimateParameters parameters;
    parameters.matches = people.matches;
    const Result<ModelEstimate> found =
        estimate_model(People::start(), records, parameters, execution);
    ASSERT_TRUE(found.ok());
    std::vector<double> levels(3);
    const LinkageModel start = People::start();
    double whole = 0;
    for (const auto& [a, b] : people.matches) {
        const int level = plain_level(start.fields[0].comparison, people.name, a, b);
        if (level < 0) continue;
        ++levels[static_cast<std::size_t>(level)];
        ++whole;
    }
    const double start_m[] = {0.05, 0.05, 0.9};
    for (std::size_t l = 0; l < 3; ++l)
        EXPECT_NEAR(found->model.fields[0].levels[l].m, (levels[l] + start_m[l]) / (whole + 1),
                    1e-15);
}

// The same bits on any number of threads, and with workers that find pairs in any order.
TEST(ModelEstimate, DoesNotDependOnThreads) {
    RandomNames random;
    const People people(random, 400);
    const std::vector<FieldValues> values = people.values();
    const Records records{values, people.rows, true, people.rows / 2};
    std::vector<std::vector<double>> answers;
    for (const unsigned threads : {1u, 2u, 5u}) {
        Execution execution(threads);
        const Result<ModelEstimate> found = estimate_model(People::start(), records, {}, execution);
        ASSERT_TRUE(found.ok());
        std::vector<double>& answer = answers.emplace_back();
        answer.push_back(found->model.prior);
        for (const FieldModel& field : found->model.fields)
            for (const LevelProbabilities& level : field.levels) {
                answer.push_back(level.m);
                answer.push_back(level.u);
            }
    }
    EXPECT_EQ(answers[0], answers[1]);
    EXPECT_EQ(answers[0], answers[2]);
}

// Of which there are so many that memory is taken for them twice
TEST(ModelEstimate, CountsTheMemoryOfTrainingPairs) {
    PlainField field(FieldKind::text);
    for (int i = 0; i < 500; ++i) field.append(PlainValue{string_of("a"), 0, {}});
    for (int i = 0; i < 500; ++i)
        field.append(PlainValue{string_of(("b" + std::to_string(i)).c_str()), 0, {}});
    std::vector<FieldValues> values;
    values.push_back(field.values());
    LinkageModel start;
    start.fields.push_back({*read_comparison("name: exact"), false, {}});
    EstimateParameters parameters;
    parameters.training_weight = -20;
    parameters.memory_limit = std::size_t{1} << 20;
    Execution execution(1);
    EXPECT_EQ(estimate_model(start, {values, 1000, false, 0}, parameters, execution)
                  .status()
                  .code(),
              ErrorCode::memory_limit);
}

TEST(ModelEstimate, NeedsSomethingToCompare) {
    PlainField field(FieldKind::text);
    LinkageModel start;
    start.fields.push_back({*read_comparison("name: exact"), false, {}});
    Execution execution(1);
    for (int rows = 0; rows < 2; ++rows) {
        std::vector<FieldValues> values;
        values.push_back(field.values());
        EXPECT_EQ(estimate_model(start, {values, static_cast<std::size_t>(rows), false, 0}, {},
                                 execution)
                      .status()
                      .message(),
                  "there are no two records to compare");
        field.append(PlainValue{string_of("a"), 0, {}});
    }
    PlainField nulls(FieldKind::text);
    for (int i = 0; i < 3; ++i) nulls.append(std::nullopt);
    std::vector<FieldValues> values;
    values.push_back(nulls.values());
    EXPECT_EQ(estimate_model(start, {values, 3, false, 0}, {}, execution).status().message(),
              "no pair of records has two values of field \"name\"");
    EXPECT_EQ(estimate_model(start, {values, 3, true, 3}, {}, execution).status().message(),
              "there are no records in one of the tables");
}

}  // namespace
}  // namespace gputext
