#include "cpp/strings/nearest_strings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "cpp/strings/detail/edit_tiles.hpp"
#include "tests/support/neighbor_rows.hpp"
#include "tests/support/on_each_simd.hpp"
#include "tests/support/plain_strings.hpp"
#include "tests/support/random_keys.hpp"
#include "tests/support/test_size.hpp"

namespace gputext {
namespace {

using testing::kAllKeyShapes;
using testing::kAllStringMetrics;
using testing::kEachSimd;
using testing::KeyShape;
using testing::kSanitized;
using testing::name_of;
using testing::name_of_simd;
using testing::OnEachSimd;
using testing::plain_edits;
using testing::plain_string_distance;
using testing::PlainNeighbors;
using testing::RandomKeys;
using testing::RandomNames;
using testing::rows_of;
using testing::String;
using testing::string_of;
using testing::StringRows;

using Keys = std::vector<std::uint32_t>;

class NearestStringsOnEach : public OnEachSimd {};

INSTANTIATE_TEST_SUITE_P(Simd, NearestStringsOnEach, kEachSimd, name_of_simd);

PlainNeighbors plain_nearest(const NearestStringsParameters& parameters, const String& query,
                             std::size_t number, const std::vector<String>& items,
                             const MatchKeys& match, const RowKeys& excluded) {
    PlainNeighbors all;
    for (std::uint32_t item = 0; item < items.size(); ++item) {
        if (!match.match(number, item) || !excluded.differ(number, item)) continue;
        const double distance = plain_string_distance(parameters.metric, query, items[item]);
        if (distance <= parameters.radius) all.emplace_back(item, distance);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.second < b.second; });
    all.resize(std::min(parameters.k, all.size()));
    return all;
}

TEST_P(NearestStringsOnEach, EqualPlainOnesOnRandomCalls) {
    RandomNames random;
    RandomKeys random_keys;
    const std::size_t calls = testing::rounds<std::size_t>(kSanitized ? 60 : 240);
    for (std::size_t call = 0; call < calls; ++call) {
        NearestStringsParameters parameters;
        parameters.metric = kAllStringMetrics[call % std::size(kAllStringMetrics)];
        parameters.simd = GetParam();
        const std::size_t n = random.below(random.below(8) == 0 ? 400 : 60);
        const std::size_t q = random.below(40);
        const std::size_t longest = random.below(6) == 0 ? 600 : 5 + random.below(80);
        // Drawn at once, so that some of both are alike.
        std::vector<String> all = random.strings(n + q, longest);
        if (parameters.metric == StringMetric::trigram)
            for (String& string : all) string = RandomNames::ascending(std::move(string));
        const auto middle = all.begin() + static_cast<std::ptrdiff_t>(n);
        const std::vector<String> items(all.begin(), middle), queries(middle, all.end());
        parameters.k = random.below(5) == 0 ? KnnParameters::all_items : 1 + random.below(n + 5);
        if (random.below(3) == 0)
            parameters.radius = random.below(4) == 0 ? -1 : 0.1 * static_cast<double>(random.below(60));
        Keys query_keys, item_keys, excluded_queries, excluded_items;
        if (random.below(2) == 0) {
            const KeyShape shape = kAllKeyShapes[random.below(std::size(kAllKeyShapes))];
            query_keys = random_keys.keys(shape, q);
            item_keys = random_keys.keys(shape, n);
        }
        if (random.below(2) == 0) {
            excluded_queries = random_keys.keys(KeyShape::uniform, q);
            excluded_items = random_keys.keys(KeyShape::uniform, n);
        }
        const MatchKeys match{query_keys, item_keys};
        const RowKeys excluded{excluded_queries, excluded_items};
        SCOPED_TRACE("call " + std::to_string(call) + ", " + name_of(parameters.metric) + ", k " +
                     std::to_string(parameters.k) + ", radius " +
                     std::to_string(parameters.radius));
        Execution execution(3);
        const StringRows query_rows(queries), item_rows(items);
        const auto answer = nearest_strings(parameters, query_rows.view(), item_rows.view(), match,
                                            excluded, execution);
        ASSERT_TRUE(answer.ok()) << answer.status().message();
        const auto found = rows_of(*answer);
        ASSERT_EQ(found.size(), q);
        for (std::size_t query = 0; query < q; ++query)
            ASSERT_EQ(found[query], rows_of(plain_nearest(parameters, queries[query], query, items,
                                                          match, excluded)))
                << "query " << query;
    }
}

/// More items than a block has, of a few lengths, so that groups are divided.
TEST(NearestStrings, AreFoundInSeveralBlocks) {
    RandomNames random;
    std::vector<String> items;
    while (items.size() < 70000)
        for (const String& string : random.strings(500, 12)) items.push_back(string);
    std::vector<String> queries = random.strings(kSanitized ? 3 : 12, 14);
    for (const StringMetric metric : kAllStringMetrics) {
        SCOPED_TRACE(name_of(metric));
        if (metric == StringMetric::trigram)
            for (auto* rows : {&items, &queries})
                for (String& string : *rows) string = RandomNames::ascending(std::move(string));
        NearestStringsParameters parameters;
        parameters.metric = metric;
        parameters.k = 3;
        Execution execution(2);
        const StringRows query_rows(queries), item_rows(items);
        const auto answer =
            nearest_strings(parameters, query_rows.view(), item_rows.view(), {}, {}, execution);
        ASSERT_TRUE(answer.ok()) << answer.status().message();
        const auto found = rows_of(*answer);
        for (std::size_t query = 0; query < queries.size(); ++query)
            ASSERT_EQ(found[query],
                      rows_of(plain_nearest(parameters, queries[query], query, items, {}, {})));
    }
}

/// Counts of common trigrams that a byte has no room for, and those just below
TEST(NearestStrings, MayHaveManyTrigramsInCommon) {
    std::vector<String> items, queries;
    for (std::uint32_t i = 0; i < 60; ++i) {
        String string(200 + 10 * i);
        std::iota(string.begin(), string.end(), 3 * i);
        (i % 3 == 0 ? queries : items).push_back(string);
    }
    NearestStringsParameters parameters;
    parameters.metric = StringMetric::trigram;
    parameters.k = 5;
    Execution execution(2);
    const StringRows query_rows(queries), item_rows(items);
    const auto answer =
        nearest_strings(parameters, query_rows.view(), item_rows.view(), {}, {}, execution);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    const auto found = rows_of(*answer);
    for (std::size_t query = 0; query < queries.size(); ++query)
        ASSERT_EQ(found[query],
                  rows_of(plain_nearest(parameters, queries[query], query, items, {}, {})))
            << "query " << query;
}

/// One edit changes as many pairs of adjacent symbols as it can where symbols are all different.
TEST_P(NearestStringsOnEach, AreFoundThoughOneEditChangesManyPairs) {
    String query(24);
    std::iota(query.begin(), query.end(), 'a');
    std::vector<String> items;
    for (std::size_t i = 0; i + 1 < query.size(); ++i) {
        String swapped = query, replaced = query, shorter = query, longer = query;
        std::swap(swapped[i], swapped[i + 1]);
        replaced[i] = 'A';
        shorter.erase(shorter.begin() + static_cast<std::ptrdiff_t>(i));
        longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(i), 'A');
        for (const String& item : {swapped, replaced, shorter, longer}) items.push_back(item);
    }
    const StringRows query_rows({query}), item_rows(items);
    for (const StringMetric metric :
         {StringMetric::levenshtein, StringMetric::osa, StringMetric::edit_rate})
        for (const double radius : {1.0, 2.0}) {
            NearestStringsParameters parameters;
            parameters.metric = metric;
            parameters.k = KnnParameters::all_items;
            parameters.radius = metric == StringMetric::edit_rate ? radius / 48 : radius;
            parameters.simd = GetParam();
            Execution execution(1);
            const auto answer =
                nearest_strings(parameters, query_rows.view(), item_rows.view(), {}, {}, execution);
            ASSERT_TRUE(answer.ok()) << answer.status().message();
            ASSERT_EQ(rows_of(*answer)[0],
                      rows_of(plain_nearest(parameters, query, 0, items, {}, {})))
                << name_of(metric) << " within " << radius;
        }
}

/// Strings of so many random symbols, of ASCII, beyond, or both.
std::vector<String> random_strings(std::mt19937_64& generator, std::size_t count,
                                   std::size_t shortest, std::size_t longest,
                                   std::uint32_t alphabet) {
    std::vector<String> strings(count);
    for (String& string : strings) {
        string.resize(shortest + generator() % (longest - shortest + 1));
        for (std::uint32_t& symbol : string) {
            const auto number = static_cast<std::uint32_t>(generator() % alphabet);
            symbol = number < 26 ? 'a' + number : 0xe38080 + 7 * number;
        }
    }
    return strings;
}

/// Where no item is near, most of them are compared, many at once.
TEST_P(NearestStringsOnEach, AreFoundAmongManyThatAreFar) {
    std::mt19937_64 generator(testing::seed());
    SCOPED_TRACE("GPUTEXT_TEST_SEED=" + std::to_string(testing::seed()));
    for (const std::uint32_t alphabet : {4u, 26u, 400u})
        for (const std::size_t shortest : {6, 17, 90}) {
            const std::size_t longest = shortest + 2, count = shortest == 90 ? 200 : 500;
            const std::vector<String> items =
                random_strings(generator, count, shortest, longest, alphabet);
            std::vector<String> queries = random_strings(generator, 2, shortest, longest, alphabet);
            queries.push_back(random_strings(generator, 1, shortest + 3, longest + 5, 26)[0]);
            Keys excluded_queries(queries.size()), excluded_items(count);
            for (Keys* keys : {&excluded_queries, &excluded_items})
                for (std::uint32_t& key : *keys) key = static_cast<std::uint32_t>(generator() % 5);
            const RowKeys excluded{excluded_queries, excluded_items};
            const StringRows query_rows(queries), item_rows(items);
            for (const StringMetric metric :
                 {StringMetric::edit_rate, StringMetric::levenshtein, StringMetric::osa}) {
                NearestStringsParameters parameters;
                parameters.metric = metric;
                parameters.k = 1 + generator() % 30;
                parameters.simd = GetParam();
                Execution execution(2);
                const auto answer = nearest_strings(parameters, query_rows.view(), item_rows.view(),
                                                    {}, excluded, execution);
                ASSERT_TRUE(answer.ok()) << answer.status().message();
                const auto found = rows_of(*answer);
                for (std::size_t query = 0; query < queries.size(); ++query)
                    ASSERT_EQ(found[query], rows_of(plain_nearest(parameters, queries[query], query,
                                                                  items, {}, excluded)))
                        << name_of(metric) << " of " << shortest << " symbols of " << alphabet;
            }
        }
}

/// Edits within all limits; where symbols beyond ASCII share a byte, there may seem to be fewer.
TEST_P(NearestStringsOnEach, AreComparedInTilesAsOneByOne) {
    std::mt19937_64 generator(testing::seed());
    SCOPED_TRACE("GPUTEXT_TEST_SEED=" + std::to_string(testing::seed()));
    for (const std::uint32_t alphabet : {2u, 26u, 400u})
        for (std::size_t length = 1; length <= EditTiles::longest; length += 1 + length / 3) {
            const std::vector<String> strings =
                random_strings(generator, 100, length, length, alphabet);
            const StringRows rows(strings);
            Keys all(strings.size());
            std::iota(all.begin(), all.end(), 0u);
            LengthOrder order;
            ASSERT_TRUE(order.set(rows.view(), all, {}).ok());
            EditTiles tiles;
            ASSERT_TRUE(tiles.set(rows.view(), order, GetParam(), {}).ok());
            ASSERT_TRUE(tiles.has(0));
            const std::size_t farthest = std::min(EditTiles::longest, length + 9);
            const String query =
                random_strings(generator, 1, std::max<std::size_t>(length, 9) - 8, farthest, alphabet)[0];
            const auto bytes = EditTiles::query(query);
            EXPECT_EQ(EditTiles::is_exact(bytes), std::ranges::max(query) < 128);
            const std::size_t longer = std::max(length, query.size());
            for (const bool transpositions : {false, true}) {
                const std::size_t most =
                    longer - generator() % (1 + std::min(length, query.size()));
                for (std::size_t tile = 0; tile < 2; ++tile) {
                    std::uint8_t found[EditTiles::lanes];
                    tiles.edits(bytes, 0, length, tile, most, transpositions, found);
                    for (std::size_t at = tile * EditTiles::lanes;
                         at < std::min(all.size(), (tile + 1) * EditTiles::lanes); ++at) {
                        const std::size_t edits = plain_edits(query, strings[at], transpositions);
                        const std::size_t given = found[at % EditTiles::lanes];
                        if (EditTiles::is_exact(bytes))
                            ASSERT_EQ(given <= most ? given : most + 1, std::min(edits, most + 1));
                        else
                            ASSERT_LE(std::min(given, most + 1), std::min(edits, most + 1));
                    }
                }
            }
        }
}

/// Strings that begin with the query's end, whose edits go as far to the side as so many can
TEST_P(NearestStringsOnEach, AreComparedInTilesAlongAllDiagonals) {
    String query(26);
    std::iota(query.begin(), query.end(), 'a');
    std::vector<String> strings(EditTiles::lanes, query);
    for (std::size_t i = 0; i < strings.size(); ++i)
        std::rotate(strings[i].begin(), strings[i].begin() + static_cast<std::ptrdiff_t>(i % 26),
                    strings[i].end());
    const StringRows rows(strings);
    Keys all(strings.size());
    std::iota(all.begin(), all.end(), 0u);
    LengthOrder order;
    ASSERT_TRUE(order.set(rows.view(), all, {}).ok());
    EditTiles tiles;
    ASSERT_TRUE(tiles.set(rows.view(), order, GetParam(), {}).ok());
    for (const bool transpositions : {false, true})
        for (std::size_t most = 0; most <= query.size(); ++most) {
            std::uint8_t found[EditTiles::lanes];
            tiles.edits(EditTiles::query(query), 0, query.size(), 0, most, transpositions, found);
            for (std::size_t at = 0; at < all.size(); ++at)
                ASSERT_EQ(std::min<std::size_t>(found[at], most + 1),
                          std::min(plain_edits(query, strings[at], transpositions), most + 1))
                    << at << " within " << most;
        }
}

/// Strings that set all 256 bits, which a count of 255 stands for, too
TEST_P(NearestStringsOnEach, MayHaveAllKindsOfSymbolsInCommon) {
    String query;
    for (std::uint32_t i = 0; i < 256; ++i) query.push_back('@' + i % 32);
    String other = query, less = query;
    std::reverse(other.begin(), other.end());
    less[7] = less[8];
    const StringRows query_rows({query}), item_rows({other, less, query});
    for (const StringMetric metric : {StringMetric::levenshtein, StringMetric::jaro}) {
        NearestStringsParameters parameters;
        parameters.metric = metric;
        parameters.radius = 0;
        parameters.simd = GetParam();
        Execution execution(1);
        const auto answer =
            nearest_strings(parameters, query_rows.view(), item_rows.view(), {}, {}, execution);
        ASSERT_TRUE(answer.ok()) << answer.status().message();
        EXPECT_EQ(answer->items, Keys{2}) << name_of(metric);
    }
}

/// Also where the lengths alone say that it is as far, among few strings of a key and among all
TEST(NearestStrings, MayBeExactlyAsFarAsTheRadius) {
    const StringRows query_rows({string_of("ab")}), item_rows({string_of("abcd"), string_of("abcde")});
    const Keys one(1), two(2);
    for (const MatchKeys& match : {MatchKeys{}, MatchKeys{one, two}}) {
        NearestStringsParameters parameters;
        parameters.metric = StringMetric::levenshtein;
        parameters.radius = 2;
        Execution execution(1);
        const auto answer =
            nearest_strings(parameters, query_rows.view(), item_rows.view(), match, {}, execution);
        ASSERT_TRUE(answer.ok()) << answer.status().message();
        EXPECT_EQ(answer->items, Keys{0}) << match.none();
    }
}

TEST(NearestStrings, RefuseWhatTheHeaderSays) {
    const StringRows rows({string_of("a"), string_of("b")});
    Execution execution(1);
    const Keys keys(2), other(1);
    const auto code = [&](const NearestStringsParameters& parameters, const MatchKeys& match,
                          const RowKeys& excluded) {
        return nearest_strings(parameters, rows.view(), rows.view(), match, excluded, execution)
            .status()
            .code();
    };
    NearestStringsParameters none, nowhere, small;
    none.k = 0;
    nowhere.radius = NAN;
    small.answer_limit = 8;
    EXPECT_EQ(code({}, {keys, keys}, {keys, keys}), ErrorCode::ok);
    EXPECT_EQ(code(none, {}, {}), ErrorCode::invalid_argument);
    EXPECT_EQ(code(nowhere, {}, {}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({}, {keys, other}, {}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({}, {}, {keys, other}), ErrorCode::invalid_argument);
    EXPECT_EQ(code(small, {}, {}), ErrorCode::memory_limit);
    execution.request_stop();
    EXPECT_EQ(code({}, {}, {}), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
