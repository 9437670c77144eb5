#include "cpp/groups/detail/id_numbers.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

using namespace gputext;

namespace {

/// Ranks the keys, and compares all of the answer with a sorted copy.
void expect_ranks(const std::vector<std::uint64_t>& keys, KeyRankSpace& space) {
    std::vector<std::uint64_t> distinct = keys;
    std::ranges::sort(distinct);
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());

    std::vector<std::uint64_t> ranked = keys;
    std::vector<std::uint32_t> ranks(keys.size());
    const Result<std::uint32_t> count = rank_keys(ranked, ranks, space, {});
    ASSERT_TRUE(count.ok());
    ASSERT_EQ(*count, distinct.size());
    EXPECT_TRUE(std::equal(distinct.begin(), distinct.end(), ranked.begin()));
    for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(distinct[ranks[i]], keys[i]) << i;
}

std::vector<std::uint64_t> random_keys(std::size_t count, std::uint64_t most, unsigned seed) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::uint64_t> key(0, most);
    std::vector<std::uint64_t> keys(count);
    for (std::uint64_t& one : keys) one = key(random);
    return keys;
}

}  // namespace

TEST(KeyRanks, AreThoseOfSortedKeys) {
    KeyRankSpace space;  // of all calls
    for (const std::size_t count : {0, 1, 2, 31, 33, 1000, 70000})
        for (const std::uint64_t most : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{500},
                                         std::uint64_t{1} << 40, UINT64_MAX})
            expect_ranks(random_keys(count, most, static_cast<unsigned>(count)), space);
}

// Of keys that are spread unevenly, single parts have most.
TEST(KeyRanks, OfKeysThatAreSpreadUnevenly) {
    KeyRankSpace space;
    for (const unsigned shift : {8u, 20u, 40u}) {
        std::vector<std::uint64_t> keys = random_keys(50000, UINT64_MAX, shift);
        for (std::size_t i = 0; i < keys.size(); ++i)
            if (i % 1000 != 0) keys[i] >>= shift;
        expect_ranks(keys, space);
    }
}

// More than are packed with their places.
TEST(KeyRanks, OfManyKeys) {
    KeyRankSpace space;
    expect_ranks(random_keys((std::size_t{1} << 21) + 1, UINT64_MAX, 1), space);
}

TEST(KeyRanks, StopWhenAsked) {
    KeyRankSpace space;
    std::vector<std::uint64_t> keys = random_keys(1000, UINT64_MAX, 1);
    std::vector<std::uint32_t> ranks(keys.size());
    const auto always = [](void*) { return true; };
    const Result<std::uint32_t> count = rank_keys(keys, ranks, space, Stop{always, nullptr});
    ASSERT_FALSE(count.ok());
    EXPECT_EQ(count.status().code(), ErrorCode::cancelled);
}
