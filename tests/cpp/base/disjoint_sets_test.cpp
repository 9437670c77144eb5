#include "cpp/base/disjoint_sets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "cpp/base/helper_threads.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

TEST(DisjointSets, NameAComponentByItsSmallestNode) {
    testing::RandomStrings random;
    for (int round = 0; round < 200; ++round) {
        const std::size_t nodes = 1 + random.below(60);
        DisjointSets sets(nodes);
        std::vector<std::uint32_t> names(nodes);  // relabelled at each join
        for (std::uint32_t node = 0; node < nodes; ++node) names[node] = node;
        for (std::size_t joins = random.below(60); joins > 0; --joins) {
            const auto a = static_cast<std::uint32_t>(random.below(nodes));
            const auto b = static_cast<std::uint32_t>(random.below(nodes));
            sets.join(a, b);
            const auto [less, more] = std::minmax(names[a], names[b]);
            std::replace(names.begin(), names.end(), std::uint32_t{more}, std::uint32_t{less});
            ASSERT_EQ(sets.first(a), names[a]);
        }
        ASSERT_EQ(sets.firsts(), names);
    }
}

/// Two threads make the same roots children of different nodes, one forwards and one backwards, so
/// that they meet on the way. Some such joins happen at the same moment, if two processors are
/// free.
TEST(DisjointSets, LoseNoJoinOfSeveralThreads) {
    constexpr std::uint32_t kTriples = 32, kRounds = 100000;
    Team team(2);
    DisjointSets sets(3 * kTriples * kRounds);
    std::atomic<std::uint32_t> arrived{0};
    team.run([&](unsigned thread) {
        for (std::uint32_t round = 0; round < kRounds; ++round) {
            arrived.fetch_add(1);
            for (int looks = 1; arrived.load() < (round + 1) * team.size(); ++looks)
                if (looks % 1000 == 0) std::this_thread::yield();
            for (unsigned other = thread; other < 2; other += team.size())
                for (std::uint32_t i = 0; i < kTriples; ++i) {
                    const std::uint32_t triple =
                        kTriples * round + (other == 0 ? i : kTriples - 1 - i);
                    sets.join(3 * triple + 2, 3 * triple + other);
                }
        }
    });
    const auto names = sets.firsts();
    std::uint32_t lost = 0;
    for (std::uint32_t node = 0; node < names.size(); ++node) lost += names[node] != node / 3 * 3;
    EXPECT_EQ(lost, 0u);
}

}  // namespace
}  // namespace gputext
