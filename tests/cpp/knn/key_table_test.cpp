#include "cpp/knn/key_table.hpp"

#include <gtest/gtest.h>

#include <set>
#include <unordered_map>

#include "tests/support/random_keys.hpp"

namespace gputext {
namespace {

using testing::kAllKeyShapes;
using testing::KeyShape;
using testing::RandomKeys;

constexpr std::uint32_t kUnknown = UINT32_MAX - 7;

/// Keys of 64 bits whose lower halves alone, or upper halves alone, would not tell them apart.
std::vector<std::uint64_t> wide(const std::vector<std::uint32_t>& keys) {
    std::vector<std::uint64_t> made;
    for (const std::uint32_t key : keys) made.push_back(std::uint64_t{key} << (key % 3 * 16));
    return made;
}

void expect_numbers(const std::vector<std::uint64_t>& items,
                    const std::vector<std::uint64_t>& queries, unsigned threads) {
    Execution execution(threads);
    KeyTable table;
    std::vector<std::uint32_t> numbers(items.size()), found(queries.size());
    ASSERT_TRUE(table.number(items, numbers, execution).ok());
    ASSERT_TRUE(table.look_up(queries, found, kUnknown, execution).ok());
    std::unordered_map<std::uint64_t, std::uint32_t> by_key;
    for (std::size_t row = 0; row < items.size(); ++row)
        ASSERT_EQ(by_key.emplace(items[row], numbers[row]).first->second, numbers[row]) << row;
    ASSERT_EQ(table.size(), by_key.size());
    std::set<std::uint32_t> different;
    for (const auto& [key, number] : by_key) {
        ASSERT_LT(number, by_key.size());
        different.insert(number);
    }
    ASSERT_EQ(different.size(), by_key.size());
    std::vector<std::uint64_t> keys(table.size());
    ASSERT_TRUE(table.keys(keys, execution).ok());
    for (std::size_t row = 0; row < items.size(); ++row)
        ASSERT_EQ(keys[numbers[row]], items[row]) << row;
    for (std::size_t row = 0; row < queries.size(); ++row) {
        const auto key = by_key.find(queries[row]);
        ASSERT_EQ(found[row], key == by_key.end() ? kUnknown : key->second) << row;
    }
}

TEST(KeyTable, EqualsAMapOnAllShapes) {
    RandomKeys random;
    for (const KeyShape shape : kAllKeyShapes)
        for (const unsigned threads : {1u, 3u, 8u})
            for (const std::size_t rows : {0, 1, 17, 3000, 200000}) {
                SCOPED_TRACE("shape " + std::to_string(static_cast<int>(shape)) + ", " +
                             std::to_string(threads) + " threads, " + std::to_string(rows));
                const auto items = wide(random.keys(shape, rows));
                const auto queries = wide(random.keys(shape, rows / 2 + 5));
                ASSERT_NO_FATAL_FAILURE(expect_numbers(items, queries, threads));
            }
}

TEST(KeyTable, NumbersAnew) {
    Execution execution(2);
    KeyTable table;
    std::vector<std::uint32_t> numbers(3), found(1);
    const std::uint64_t first[] = {5, 6, 7}, second[] = {8, 8, 8}, query[] = {5};
    ASSERT_TRUE(table.number(first, numbers, execution).ok());
    ASSERT_TRUE(table.number(second, numbers, execution).ok());
    EXPECT_EQ(table.size(), 1u);
    ASSERT_TRUE(table.look_up(query, found, kUnknown, execution).ok());
    EXPECT_EQ(found[0], kUnknown);
}

TEST(KeyTable, Stops) {
    Execution execution(2);
    execution.request_stop();
    KeyTable table;
    std::vector<std::uint64_t> keys(1000, 1);
    std::vector<std::uint32_t> numbers(keys.size());
    EXPECT_EQ(table.number(keys, numbers, execution).code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
