#include "cpp/records/record_pairs.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <mutex>
#include <tuple>

#include "cpp/records/value_levels.hpp"
#include "tests/support/random_records.hpp"
#include "tests/support/test_size.hpp"

namespace gputext {
namespace {

using testing::plain_level;
using testing::PlainField;
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
        const Case one(random, random.below(random.below(10) == 0 ? 300 : 60),
                       1 + random.below(random.below(8) == 0 ? 9 : 4));
        const Pairs expected = one.expected();
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
