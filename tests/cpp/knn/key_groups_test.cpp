#include "cpp/knn/key_groups.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/random_keys.hpp"

namespace gputext {
namespace {

using testing::kAllKeyShapes;
using testing::KeyShape;
using testing::RandomKeys;

using Keys = std::vector<std::uint32_t>;
using Rows = std::vector<std::uint32_t>;

Rows rows_of(std::span<const std::uint32_t> rows) {
    return {rows.begin(), rows.end()};
}

void expect_groups(const Keys& queries, const Keys& items, unsigned threads) {
    std::map<std::uint32_t, std::pair<Rows, Rows>> by_key;
    for (std::uint32_t row = 0; row < queries.size(); ++row)
        if (queries[row] != kNoKey) by_key[queries[row]].first.push_back(row);
    for (std::uint32_t row = 0; row < items.size(); ++row)
        if (items[row] != kNoKey) by_key[items[row]].second.push_back(row);
    std::erase_if(by_key, [](const auto& group) {
        return group.second.first.empty() || group.second.second.empty();
    });
    Execution execution(threads);
    const auto groups = group_by_key({queries, items}, execution);
    ASSERT_TRUE(groups.ok()) << groups.status().message();
    ASSERT_EQ(groups->size(), by_key.size());
    ASSERT_EQ(groups->query_begins.size(), by_key.size() + 1);
    ASSERT_EQ(groups->query_begins.front(), 0u);
    ASSERT_EQ(groups->query_begins.back(), groups->queries.size());
    ASSERT_EQ(groups->item_begins.back(), groups->items.size());
    std::uint64_t pairs = 0;
    std::size_t number = 0;
    for (const auto& [key, group] : by_key) {
        ASSERT_EQ(rows_of(groups->queries_of(number)), group.first) << "key " << key;
        ASSERT_EQ(rows_of(groups->items_of(number)), group.second) << "key " << key;
        pairs += group.first.size() * group.second.size();
        ++number;
    }
    EXPECT_EQ(groups->pairs(), pairs);
}

TEST(KeyGroups, EqualAMapOnAllShapes) {
    RandomKeys random;
    for (const KeyShape shape : kAllKeyShapes)
        for (const std::size_t queries : {0, 1, 7, 3000, 70000})
            for (const std::size_t items : {0, 1, 9, 2000, 300000}) {
                SCOPED_TRACE("shape " + std::to_string(static_cast<int>(shape)) + ", " +
                             std::to_string(queries) + " and " + std::to_string(items));
                ASSERT_NO_FATAL_FAILURE(
                    expect_groups(random.keys(shape, queries), random.keys(shape, items), 3));
            }
}

TEST(KeyGroups, AreTheSameForSeveralBlocksOfRows) {
    RandomKeys random;
    const Keys queries = random.keys(KeyShape::zipf, 700000);
    expect_groups(queries, random.keys(KeyShape::uniform, 600000), 4);
    expect_groups(queries, {}, 2);
}

TEST(KeyGroups, NeedAKeyForEachRow) {
    const Keys three(3), two(2);
    EXPECT_TRUE(check_match_keys({three, two}, 3, 2).ok());
    EXPECT_TRUE(check_match_keys({}, 3, 2).ok());
    EXPECT_EQ(check_match_keys({three, two}, 2, 2).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(check_match_keys({three, {}}, 3, 2).code(), ErrorCode::invalid_argument);
}

TEST(KeyGroups, CanBeCancelled) {
    const Keys keys(100000, 3);
    Execution execution(2);
    execution.request_stop();
    EXPECT_EQ(group_by_key({keys, keys}, execution).status().code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
