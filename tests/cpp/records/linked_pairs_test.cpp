#include "cpp/records/linked_pairs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "tests/support/plain_strings.hpp"

namespace gputext {
namespace {

using testing::RandomNames;

constexpr std::int8_t kLevels[] = {1, -1};

FoundPair pair_of(std::uint32_t first, std::uint32_t second) {
    return {first, second, first + 0.001 * second, kLevels};
}

/// What `threads` workers find in turn.
Status append_all(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& found, unsigned threads,
                  LinkedPairs& pairs) {
    for (std::size_t i = 0; i < found.size(); ++i)
        GPUTEXT_TRY(pairs.append(pair_of(found[i].first, found[i].second),
                                 static_cast<unsigned>(i) % threads));
    return {};
}

/// The pairs (0, 1), (0, 2), ...
std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs_of_first(std::uint32_t count) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    for (std::uint32_t second = 1; second <= count; ++second) pairs.emplace_back(0, second);
    return pairs;
}

TEST(LinkedPairs, AreInTheOrderOfTheirRecords) {
    constexpr std::uint32_t kRecords = 50;
    RandomNames random;
    for (const bool shuffled : {false, true}) {
        std::vector<std::uint32_t> ranks(kRecords);
        std::iota(ranks.begin(), ranks.end(), 0);
        if (shuffled)
            for (std::uint32_t i = kRecords; i > 1; --i)
                std::swap(ranks[i - 1], ranks[random.below(i)]);
        std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
        for (std::uint32_t a = 0; a < kRecords; ++a)
            for (std::uint32_t b = a + 1; b < kRecords; ++b)
                if (random.below(3) == 0)
                    found.insert(found.begin() + static_cast<std::ptrdiff_t>(
                                                     random.below(found.size() + 1)),
                                 {a, b});
        LinkedPairs pairs(2, 4, UINT32_MAX, SIZE_MAX);
        // The last worker finds none.
        ASSERT_TRUE(append_all(found, 3, pairs).ok());
        RecordRanks order{kRecords};
        if (shuffled) order.ranks = ranks;
        Execution execution(2);
        ASSERT_TRUE(pairs.finish(order, execution).ok());
        std::vector<std::tuple<std::uint32_t, std::uint32_t, double>> expected, listed;
        for (const auto& [a, b] : found) {
            const bool in_order = ranks[a] < ranks[b];
            expected.emplace_back(in_order ? a : b, in_order ? b : a, pair_of(a, b).weight);
        }
        std::ranges::sort(expected, {}, [&](const auto& pair) {
            return std::pair(ranks[std::get<0>(pair)], ranks[std::get<1>(pair)]);
        });
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            const LinkedPair& pair = pairs.pair(i);
            listed.emplace_back(pair.first, pair.second, pair.weight);
            EXPECT_TRUE(std::equal(kLevels, kLevels + 2, pairs.levels(i)));
        }
        EXPECT_EQ(listed, expected);
    }
}

// Each worker takes room for some at a time.
TEST(LinkedPairs, AreAllThereIfTheyAreAsManyAsAreWanted) {
    constexpr std::uint32_t kPairs = 10000;
    for (const unsigned threads : {1, 4}) {
        LinkedPairs pairs(2, threads, kPairs, SIZE_MAX);
        ASSERT_TRUE(append_all(pairs_of_first(kPairs), threads, pairs).ok());
        Execution execution(2);
        ASSERT_TRUE(pairs.finish({kPairs + 1}, execution).ok());
        ASSERT_EQ(pairs.size(), kPairs);
        for (std::uint32_t i = 0; i < kPairs; ++i) ASSERT_EQ(pairs.pair(i).second, i + 1);
    }
    for (const std::uint32_t few : {1, 7}) {
        LinkedPairs pairs(2, 8, few, SIZE_MAX);
        ASSERT_TRUE(append_all(pairs_of_first(few), 8, pairs).ok());
        Execution execution(1);
        ASSERT_TRUE(pairs.finish({few + 1}, execution).ok());
        EXPECT_EQ(pairs.size(), few);
    }
}

TEST(LinkedPairs, AreCountedIfTheyAreMoreThanAreWanted) {
    for (const std::uint64_t most : {1, 99, 99999}) {
        LinkedPairs pairs(2, 3, most, SIZE_MAX);
        ASSERT_TRUE(append_all(pairs_of_first(100000), 3, pairs).ok());
        Execution execution(1);
        const Status status = pairs.finish({100001}, execution);
        EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
        EXPECT_EQ(status.message(), "100000 pairs have at least that match weight, more than max_pairs, " +
                                        std::to_string(most));
    }
}

TEST(LinkedPairs, TakeNoMoreMemoryThanAllowed) {
    // 16 bytes and 2 levels each, twice
    LinkedPairs pairs(2, 1, UINT32_MAX, 36 * 4096 * 2);
    EXPECT_TRUE(append_all(pairs_of_first(2 * 4096), 1, pairs).ok());
    EXPECT_EQ(pairs.append(pair_of(1, 2), 0).code(), ErrorCode::memory_limit);
}

TEST(LinkedPairs, EndWhenStopped) {
    LinkedPairs pairs(2, 1, 10, SIZE_MAX);
    ASSERT_TRUE(append_all({{0, 1}}, 1, pairs).ok());
    Execution execution(1);
    execution.request_stop();
    EXPECT_EQ(pairs.finish({2}, execution).code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
