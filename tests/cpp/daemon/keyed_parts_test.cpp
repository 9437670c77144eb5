// Parts of a search within equal keys: which queries they have, and the answer that they make.

#include "cpp/daemon/keyed_parts.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "cpp/knn/key_groups.hpp"
#include "cpp/knn/keyed_knn.hpp"
#include "tests/support/neighbor_rows.hpp"
#include "tests/support/random_keys.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

std::vector<std::uint32_t> random_keys(RandomRows& random, std::size_t rows, std::size_t keys) {
    std::vector<std::uint32_t> made(rows);
    for (std::uint32_t& key : made)
        key = random.below(9) == 0 ? kNoKey : static_cast<std::uint32_t>(random.below(keys));
    return made;
}

void expect_equal(const KeyGroups& a, const KeyGroups& b) {
    EXPECT_EQ(a.queries, b.queries);
    EXPECT_EQ(a.items, b.items);
    EXPECT_EQ(a.query_begins, b.query_begins);
    EXPECT_EQ(a.item_begins, b.item_begins);
}

TEST(KeyedParts, NumbersMakeTheSameGroupsAgain) {
    RandomRows random;
    Execution execution(2);
    for (const std::size_t keys : {1, 7, 1000, 100'000}) {
        const auto queries = random_keys(random, 90'000, keys);
        const auto items = random_keys(random, 70'000, keys);
        const auto groups = group_by_key({queries, items}, execution);
        ASSERT_TRUE(groups.ok());
        GroupNumbers numbers;
        ASSERT_TRUE(numbers.set(*groups, queries.size(), items.size(), execution).ok());
        const auto again = group_by_key(numbers.matches(), execution);
        ASSERT_TRUE(again.ok());
        expect_equal(*again, *groups);
    }
}

TEST(KeyedParts, HaveEachQueryOnceWithAllItemsOfItsKey) {
    RandomRows random;
    Execution execution(2);
    for (const std::size_t keys : {1, 3, 50, 5000})
        for (const std::size_t parts : {1, 2, 3, 8}) {
            const auto queries = random_keys(random, 1000, keys);
            const auto items = random_keys(random, 700, keys);
            const auto groups = group_by_key({queries, items}, execution);
            ASSERT_TRUE(groups.ok());
            const auto begins = parts_by_pairs(*groups, parts);
            ASSERT_EQ(begins.size(), parts + 1);
            ASSERT_EQ(begins.front(), 0u);
            ASSERT_EQ(begins.back(), groups->queries.size());
            std::uint64_t pairs = 0, most_items = 0;
            for (std::size_t g = 0; g < groups->size(); ++g)
                most_items = std::max<std::uint64_t>(most_items, groups->items_of(g).size());
            std::vector<std::uint32_t> seen;
            for (std::size_t part = 0; part < parts; ++part) {
                ASSERT_LE(begins[part], begins[part + 1]);
                const KeyGroups own = groups_of_queries(*groups, begins[part], begins[part + 1]);
                pairs += own.pairs();
                EXPECT_LE(own.pairs(), groups->pairs() / parts + 2 * most_items);
                for (std::size_t g = 0; g < own.size(); ++g) {
                    const std::uint32_t key = queries[own.queries_of(g)[0]];
                    EXPECT_EQ(own.items_of(g).size(),
                              static_cast<std::size_t>(std::ranges::count(items, key)));
                    for (const std::uint32_t item : own.items_of(g)) EXPECT_EQ(items[item], key);
                    for (const std::uint32_t query : own.queries_of(g)) {
                        EXPECT_EQ(queries[query], key);
                        seen.push_back(query);
                    }
                }
            }
            EXPECT_EQ(pairs, groups->pairs());
            EXPECT_EQ(seen, groups->queries);
        }
    EXPECT_EQ(parts_by_pairs({}, 3), (std::vector<std::uint64_t>{0, 0, 0, 0}));
}

TEST(KeyedParts, MakeTheAnswerOfTheWholeSearch) {
    RandomRows random;
    Execution execution(2);
    const std::size_t d = 16, n = 20'000;
    const TypedRows rows(random.rows(Shape::grid, n, d), ElementType::float32, d);
    const auto keys = random_keys(random, n, 8);
    const KnnParameters parameters{.k = 3, .metric = Metric::euclidean, .include_ties = true};
    const MatchKeys matches{keys, keys};
    const auto wanted =
        keyed_knn(parameters, rows.vectors(), rows.vectors(), matches, {}, execution);
    ASSERT_TRUE(wanted.ok());
    for (const std::size_t devices : {1, 2, 3, 4}) {
        KeyedParts parts;
        const auto count =
            parts.prepare(matches, rows.vectors(), rows.vectors(), devices, execution);
        ASSERT_TRUE(count.ok());
        EXPECT_EQ(*count, devices);
        for (std::size_t part = 0; part < *count; ++part) {
            GroupNumbers numbers;
            ASSERT_TRUE(numbers.set(parts.groups(part), n, n, execution).ok());
            auto found = keyed_knn(parameters, rows.vectors(), rows.vectors(), numbers.matches(),
                                   {}, execution);
            ASSERT_TRUE(found.ok());
            parts.answer(part) = std::move(*found);
        }
        ASSERT_TRUE(parts.merge({3, SIZE_MAX}, execution).ok());
        ASSERT_EQ(parts.answers().size(), 1u);
        EXPECT_EQ(testing::differing(parts.answers()[0], *wanted), 0u);
        EXPECT_EQ(parts.merge({3, 1000}, execution).code(), ErrorCode::memory_limit);
    }
}

}  // namespace
}  // namespace gputext
