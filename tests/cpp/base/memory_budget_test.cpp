#include "cpp/base/memory_budget.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace gputext {
namespace {

constexpr std::size_t kMegabyte = std::size_t{1} << 20;

TEST(MemoryBudget, GivesUpToItsLimit) {
    MemoryBudget budget(100);
    EXPECT_EQ(budget.limit(), 100u);
    EXPECT_TRUE(budget.take(60).ok());
    EXPECT_TRUE(budget.take(40).ok());
    EXPECT_EQ(budget.used(), 100u);
    EXPECT_TRUE(budget.take(0).ok());
    EXPECT_EQ(budget.take(1).code(), ErrorCode::memory_limit);
    EXPECT_EQ(budget.used(), 100u);
    budget.give_back(30);
    EXPECT_EQ(budget.used(), 70u);
    EXPECT_TRUE(budget.take(30).ok());
    EXPECT_FALSE(budget.take(SIZE_MAX).ok());
}

TEST(MemoryBudget, SaysHowMuchItWouldTake) {
    MemoryBudget budget(64 * kMegabyte);
    ASSERT_TRUE(budget.take(60 * kMegabyte).ok());
    EXPECT_EQ(budget.take(4 * kMegabyte + 1).message(),
              "the answer would take at least 65 MB, more than the memory limit of 64 MB");
    EXPECT_EQ(budget.take(40 * kMegabyte, "the candidates").message(),
              "the candidates would take at least 100 MB, more than the memory limit of 64 MB");
    MemoryBudget small(1500 * 1024);
    EXPECT_EQ(small.take(2 * kMegabyte).message(),
              "the answer would take at least 2048 kB, more than the memory limit of 1500 kB");
    MemoryBudget none(0);
    EXPECT_FALSE(none.take(1).ok());
}

TEST(MemoryBudget, NeverGivesThreadsMoreThanItsLimit) {
    constexpr std::size_t threads = 8, tries = 20000, part = 7, limit = threads * tries * part / 2;
    MemoryBudget budget(limit);
    std::atomic<std::size_t> taken{0}, refused{0};
    std::vector<std::thread> team;
    for (std::size_t i = 0; i < threads; ++i)
        team.emplace_back([&] {
            for (std::size_t n = 0; n < tries; ++n) {
                if (budget.take(part).ok())
                    taken += part;
                else
                    ++refused;
            }
        });
    for (std::thread& thread : team) thread.join();
    EXPECT_EQ(taken, limit / part * part);
    EXPECT_EQ(budget.used(), taken);
    EXPECT_EQ(refused, threads * tries - limit / part);
}

}  // namespace
}  // namespace gputext
