#include "cpp/records/record_pairs.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <tuple>

#include "cpp/records/detail/search_cuts.hpp"
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

using Pairs = std::map<std::pair<std::uint32_t, std::uint32_t>,
                       std::pair<double, std::vector<std::int8_t>>>;

constexpr FieldKind kKinds[] = {FieldKind::text, FieldKind::number, FieldKind::date,
                                FieldKind::set,  FieldKind::text,   FieldKind::other};

/// Records with all that a search is given, and their pairs by the definition.
struct Case {
    std::vector<PlainField> plain;
    std::vector<FieldValues> values;
    LinkageModel model;
    Records records;
    PairSearchParameters parameters;
    std::vector<std::vector<std::uint32_t>> keys;
    std::vector<RecordKey> key_views;

    Case(RandomNames& random, std::size_t rows, std::size_t fields) {
        RandomRecords generator(random);
        for (std::size_t i = 0; i < fields; ++i) {
            const FieldKind kind = kKinds[random.below(std::size(kKinds))];
            plain.push_back(generator.field(kind, rows));
            values.push_back(plain.back().values());
            model.fields.push_back(generator.model(kind, i));
        }
        model.prior = generator.probability() / 2;
        records.fields = values;
        records.rows = rows;
        records.two_tables = random.below(2) == 0;
        if (records.two_tables) records.split = random.below(rows + 1);
        parameters.min_weight = static_cast<double>(random.below(60)) / 2 - 15;
        parameters.few_pairs = random.below(2) == 0 ? 5 : 200;
        if (random.below(2) == 0) parameters.task_pairs = 1 + random.below(500);
        if (random.below(4) == 0)
            for (std::size_t n = 1 + random.below(2); n > 0; --n) {
                const FieldValues* const used[] = {&values[random.below(fields)],
                                                   &values[random.below(fields)]};
                keys.push_back(*combined_key(std::span(used, 1 + random.below(2)), {}));
            }
        key_views.assign(keys.begin(), keys.end());
        parameters.keys = key_views;
    }

    bool keys_agree(std::size_t a, std::size_t b) const {
        for (const auto& key : keys)
            if (key[a] != kNullValue && key[a] == key[b]) return true;
        return keys.empty();
    }

    Pairs expected() const {
        std::vector<FieldWeights> weights;
        for (std::size_t f = 0; f < plain.size(); ++f)
            weights.emplace_back(model.fields[f], values[f]);
        Pairs pairs;
        for (std::uint32_t a = 0; a < records.rows; ++a)
            for (std::uint32_t b = a + 1; b < records.rows; ++b) {
                if (records.two_tables && (a >= records.split || b < records.split)) continue;
                if (!keys_agree(a, b)) continue;
                double weight = model.prior_weight();
                std::vector<std::int8_t> levels;
                for (std::size_t f = 0; f < plain.size(); ++f) {
                    const int level = plain_level(model.fields[f].comparison, plain[f], a, b);
                    levels.push_back(static_cast<std::int8_t>(level));
                    const std::uint32_t value = values[f].of_rows()[a];
                    weight += level != kNullLevel && value == values[f].of_rows()[b]
                                  ? weights[f].of_equal(value, level)
                                  : weights[f].of(level);
                }
                if (weight >= parameters.min_weight) pairs[{a, b}] = {weight, levels};
            }
        return pairs;
    }

    Pairs found(unsigned threads, PairSearchReport& report) const {
        Execution execution(threads);
        Pairs pairs;
        std::mutex mutex;
        const Status status = find_record_pairs(
            model, records, parameters, execution,
            [&](const FoundPair& pair, unsigned) -> Status {
                const std::lock_guard lock(mutex);
                const auto [at, is_new] = pairs.insert(
                    {{pair.first, pair.second},
                     {pair.weight, {pair.levels, pair.levels + model.fields.size()}}});
                EXPECT_TRUE(is_new) << pair.first << ' ' << pair.second;
                return {};
            },
            report);
        EXPECT_TRUE(status.ok()) << status.message();
        return pairs;
    }
};

TEST(RecordPairs, AreThoseOfTheDefinitionOnRandomRecords) {
    RandomNames random;
    std::uint64_t left_out = 0, pairs = 0;
    const std::size_t cases = testing::rounds<std::size_t>(testing::kSanitized ? 60 : 400);
    for (std::size_t i = 0; i < cases; ++i) {
        Case one(random, random.below(random.below(10) == 0 ? 300 : 60),
                 1 + random.below(random.below(8) == 0 ? 9 : 4));
        Pairs expected = one.expected();
        // The weight of a pair, which bounds reach by sums in another order
        if (!expected.empty() && random.below(2) == 0) {
            one.parameters.min_weight =
                std::next(expected.begin(),
                          static_cast<std::ptrdiff_t>(random.below(expected.size())))
                    ->second.first;
            expected = one.expected();
        }
        PairSearchReport report;
        EXPECT_EQ(one.found(1 + static_cast<unsigned>(random.below(3)), report), expected)
            << "case " << i;
        pairs += one.records.pairs();
        if (one.keys.empty() && !report.looked_at_all)
            left_out += one.records.pairs() - std::min(one.records.pairs(), report.looked_at);
        if (HasFailure()) return;
    }
    // Else the cuts were never tried.
    EXPECT_GT(left_out, pairs / 20);
}

TEST(RecordPairs, EndWhenStopped) {
    RandomNames random;
    const Case one(random, 300, 3);
    Execution execution(2);
    execution.request_stop();
    PairSearchReport report;
    EXPECT_EQ(find_record_pairs(
                  one.model, one.records, one.parameters, execution,
                  [](const FoundPair&, unsigned) { return Status(); }, report)
                  .code(),
              ErrorCode::cancelled);
}

/// Records of one field, with so many names in turn.
std::vector<FieldValues> named_records(std::size_t rows, std::size_t names) {
    PlainField field(FieldKind::text);
    for (std::size_t i = 0; i < rows; ++i)
        field.append(PlainValue{{static_cast<std::uint32_t>('0' + i % names)}, 0, {}});
    std::vector<FieldValues> values;
    values.push_back(field.values());
    return values;
}

/// Whose weights are -3.2 and 3.2.
LinkageModel model_of_names() {
    LinkageModel model;
    model.prior = 0.1;
    model.fields.push_back({*read_comparison("name: exact"), false, {{0.1, 0.9}, {0.9, 0.1}}});
    return model;
}

// Within parts of a large block that a key leads to, the name leads on.
TEST(RecordPairs, OfPartsOfABlockAreAllFound) {
    constexpr std::size_t kRows = 200, kNames = 50;
    const std::vector<FieldValues> values = named_records(kRows, kNames);
    const std::vector<std::uint32_t> key(kRows, 0);
    const RecordKey keys[] = {key};
    PairSearchParameters parameters;
    parameters.min_weight = -1;
    parameters.keys = keys;
    parameters.few_pairs = 5;
    parameters.task_pairs = 500;
    Execution execution(2);
    PairSearchReport report;
    std::atomic<std::size_t> taken{0};
    EXPECT_TRUE(find_record_pairs(
                    model_of_names(), {values, kRows, false, 0}, parameters, execution,
                    [&](const FoundPair&, unsigned) {
                        ++taken;
                        return Status();
                    },
                    report)
                    .ok());
    EXPECT_EQ(taken, kNames * 6);
    EXPECT_LT(report.looked_at, kRows * (kRows - 1) / 2);
}

TEST(RecordPairs, CombineKeysOfRecordsWithoutNulls) {
    PlainField a(FieldKind::text), b(FieldKind::text);
    for (const bool null : {false, true, false, false}) {
        a.append(null ? std::nullopt : std::optional(PlainValue{{'x'}, 0, {}}));
        b.append(PlainValue{{'y'}, 0, {}});
    }
    const FieldValues first = a.values(), second = b.values();
    const FieldValues* const both[] = {&first, &second};
    const FieldValues* const reversed[] = {&second, &first};
    for (const auto& fields : {both, reversed}) {
        const std::vector<std::uint32_t> key = *combined_key(std::span(fields, 2), {});
        EXPECT_EQ(key, (std::vector<std::uint32_t>{0, kNullValue, 0, 0}));
    }
}

// In the midst of a block: not when it has been compared to its end
TEST(RecordPairs, EndSoonWhenStopped) {
    constexpr std::size_t kRows = 2000;
    const std::vector<FieldValues> values = named_records(kRows, 1);
    const LinkageModel model = model_of_names();
    PairSearchParameters parameters;
    parameters.min_weight = -1000;
    Execution execution(1);
    PairSearchReport report;
    std::size_t taken = 0;
    EXPECT_EQ(find_record_pairs(
                  model, {values, kRows, false, 0}, parameters, execution,
                  [&](const FoundPair&, unsigned) {
                      if (taken++ == 0) execution.request_stop();
                      return Status();
                  },
                  report)
                  .code(),
              ErrorCode::cancelled);
    EXPECT_LT(taken, kRows * kRows / 8);  // of the half
}

TEST(RecordPairs, TakeNoMoreMemoryThanAllowed) {
    // 64 bytes a record and 8 for its field, and 40 for each name
    const std::vector<FieldValues> values = named_records(1000, 20);
    PairSearchParameters parameters;
    Execution execution(1);
    PairSearchReport report;
    const auto search = [&](std::size_t limit) {
        parameters.memory_limit = limit;
        return find_record_pairs(
            model_of_names(), {values, 1000, false, 0}, parameters, execution,
            [](const FoundPair&, unsigned) { return Status(); }, report);
    };
    EXPECT_EQ(search(72799).code(), ErrorCode::memory_limit);
    EXPECT_TRUE(search(72800).ok());
}

TEST(RecordPairs, PassErrorsOfTheirTakerOn) {
    RandomNames random;
    Case one(random, 100, 2);
    one.records.two_tables = false;
    one.parameters.keys = {};
    one.parameters.min_weight = -1000;
    Execution execution(2);
    PairSearchReport report;
    const Status full(ErrorCode::memory_limit, "full");
    EXPECT_EQ(find_record_pairs(
                  one.model, one.records, one.parameters, execution,
                  [&](const FoundPair&, unsigned) { return full; }, report)
                  .code(),
              ErrorCode::memory_limit);
}

// ---- Cuts ----

TEST(SearchCuts, AddUpToNoMoreThanAPairMayLack) {
    RandomNames random;
    for (int round = 0; round < 300; ++round) {
        std::vector<FieldEvents> fields(1 + random.below(4));
        for (FieldEvents& field : fields) {
            for (std::size_t n = random.below(5); n > 0; --n)
                field.events.push_back({static_cast<double>(random.below(60)) / 7,
                                        static_cast<double>(random.below(100)),
                                        random.below(2) == 0});
            field.least = static_cast<double>(random.below(3)) / 9;
        }
        const double sum = static_cast<double>(random.below(80)) / 3;
        const auto cuts = choose_cuts(fields, sum, 1e9);
        if (!cuts) continue;
        EXPECT_LE(std::accumulate(cuts->begin(), cuts->end(), 0.0), sum + 1e-9);
        for (std::size_t i = 0; i < fields.size(); ++i) EXPECT_GE((*cuts)[i], fields[i].least);
    }
}

// Else pairs with a null in each field, which weighs 0, would be above all cuts and come from none.
TEST(SearchCuts, AreNotBelowTheWeightOfANull) {
    const std::vector<FieldValues> values = named_records(4, 2);
    const LinkageModel model = model_of_names();
    const Result<ValueLevels> levels = ValueLevels::of(model.fields[0].comparison, values[0], {});
    ASSERT_TRUE(levels.ok());
    const FieldWeights weights(model.fields[0], values[0]);
    EXPECT_EQ(events_of(*levels, model.fields[0], weights, {values, 4, false, 0}).least, 0);
}

// ---- Values ----

TEST(FieldValues, HaveOneZero) {
    PlainField field(FieldKind::number);
    for (const double number : {0.0, -0.0}) field.append(PlainValue{{}, number, {}});
    EXPECT_EQ(field.values().count(), 1u);
}

TEST(SimilarValues, AreListedOnceThoughTheyAreSimilarTwice) {
    using namespace std::chrono;
    PlainField field(FieldKind::date);
    for (const year_month_day day : {1999y / February / 3, 1999y / March / 2})
        field.append(PlainValue{
            {}, static_cast<double>(sys_days{day}.time_since_epoch().count()), {}});
    const FieldValues values = field.values();
    const FieldComparison comparison =
        *read_comparison("born: exact, day_month_exchanged, within 31");
    const Result<ValueLevels> levels = ValueLevels::of(comparison, values, {});
    ASSERT_TRUE(levels.ok());
    Execution execution(1);
    SimilarValues found;
    ASSERT_TRUE(levels->similar(0, 2, 1, 100, execution, found).ok());
    EXPECT_EQ(found.values, (std::vector<std::uint32_t>{1, 0}));
    EXPECT_EQ(found.levels, (std::vector<std::int8_t>{2, 2}));
}

// ---- Counts of levels ----

TEST(LevelCounts, AreThoseOfAllPairs) {
    RandomNames random;
    RandomRecords generator(random);
    for (std::size_t i = 0; i < testing::rounds<std::size_t>(300); ++i) {
        const std::size_t rows = random.below(80);
        const FieldKind kind = kKinds[random.below(std::size(kKinds))];
        const PlainField plain = generator.field(kind, rows);
        const FieldValues values = plain.values();
        const FieldComparison comparison = generator.comparison(kind, 0);
        Records records{std::span(&values, 1), rows, random.below(2) == 0, 0};
        if (records.two_tables) records.split = random.below(rows + 1);
        std::vector<std::uint64_t> expected(comparison.conditions.size() + 1);
        std::uint64_t nulls = 0;
        for (std::size_t a = 0; a < rows; ++a)
            for (std::size_t b = a + 1; b < rows; ++b) {
                if (records.two_tables && (a >= records.split || b < records.split)) continue;
                const int level = plain_level(comparison, plain, a, b);
                ++(level == kNullLevel ? nulls : expected[static_cast<std::size_t>(level)]);
            }
        Execution execution(1 + static_cast<unsigned>(random.below(3)));
        const Result<ValueLevels> levels = ValueLevels::of(comparison, values, {});
        ASSERT_TRUE(levels.ok());
        const Result<LevelCounts> counts = levels->count(records, execution);
        ASSERT_TRUE(counts.ok()) << counts.status().message();
        ASSERT_EQ(counts->pairs, expected) << "case " << i;
        ASSERT_EQ(counts->nulls, nulls) << "case " << i;
    }
}

}  // namespace
}  // namespace gputext
