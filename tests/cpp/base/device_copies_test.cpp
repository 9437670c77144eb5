// Which resident ranges a device copies, and which copies go.

#include "cpp/base/device_copies.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace gputext {
namespace {

using Ids = std::vector<std::uint64_t>;
using Range = ResidentRanges::Range;
using Room = DeviceCopies::Room;

constexpr std::uint64_t kPlenty = std::uint64_t{1} << 40;

/// Never read.
const std::uint8_t* address(std::uint64_t at) {
    return reinterpret_cast<const std::uint8_t*>(std::uintptr_t{1} << 30) + at;
}

Range range(std::uint64_t id, std::size_t size = 1000) {
    return {id, address(id * 100000), size};
}

/// A job that asks for all of a range, and copies it where it may.
bool ask_all(DeviceCopies& copies, const Range& wanted, const Room& room) {
    copies.begin_job();
    if (copies.ask(wanted, wanted.size)) return true;
    if (!copies.wanted(wanted)) return false;
    const auto going = copies.make_room(wanted, room);
    if (!going) return false;
    for (const std::uint64_t id : *going) copies.remove(id);
    copies.add(wanted);
    return true;
}

TEST(ResidentRanges, FindTheRangeThatHoldsAllBytes) {
    ResidentRanges ranges;
    EXPECT_TRUE(ranges.empty());
    ranges.add({7, address(100), 50});
    EXPECT_FALSE(ranges.empty());
    EXPECT_EQ(ranges.containing(address(100), 50)->id, 7u);
    EXPECT_EQ(ranges.containing(address(149), 1)->id, 7u);
    EXPECT_FALSE(ranges.containing(address(99), 1));
    EXPECT_FALSE(ranges.containing(address(149), 2));
    ranges.remove(7);
    EXPECT_TRUE(ranges.empty());
    EXPECT_FALSE(ranges.containing(address(100), 50));
}

TEST(DeviceCopies, AreDueAtAQuarterOfTheRange) {
    DeviceCopies copies;
    copies.begin_job();
    EXPECT_FALSE(copies.wanted(range(1)));
    EXPECT_FALSE(copies.ask(range(1), 249));
    EXPECT_FALSE(copies.wanted(range(1)));
    EXPECT_FALSE(copies.ask(range(2), 250));
    EXPECT_TRUE(copies.wanted(range(2)));
    // All jobs together.
    copies.begin_job();
    EXPECT_FALSE(copies.ask(range(1), 1));
    EXPECT_TRUE(copies.wanted(range(1)));
    copies.add(range(1));
    EXPECT_FALSE(copies.wanted(range(1)));
    EXPECT_TRUE(copies.ask(range(1), 1));
    EXPECT_EQ(copies.bytes(), 1000u);
}

TEST(DeviceCopies, StartAnewAfterACopyHasGone) {
    DeviceCopies copies;
    EXPECT_TRUE(ask_all(copies, range(1), {kPlenty, kPlenty}));
    copies.remove(1);
    copies.remove(1);
    EXPECT_EQ(copies.bytes(), 0u);
    EXPECT_FALSE(copies.ask(range(1), 249));
    EXPECT_FALSE(copies.wanted(range(1)));
}

TEST(DeviceCopies, AreNotTriedAgainByAJobThatWasRefused) {
    DeviceCopies copies;
    copies.begin_job();
    copies.ask(range(1), 1000);
    ASSERT_TRUE(copies.wanted(range(1)));
    copies.refuse(range(1));
    EXPECT_FALSE(copies.wanted(range(1)));
    copies.begin_job();
    EXPECT_TRUE(copies.wanted(range(1)));
}

TEST(DeviceCopies, LeaveTheJobAsMuchAgain) {
    DeviceCopies copies;
    copies.begin_job();
    copies.ask(range(1), 1000);
    EXPECT_EQ(copies.make_room(range(1), {1000, 2000}), Ids());
    EXPECT_FALSE(copies.make_room(range(1), {1000, 1999}));
    EXPECT_FALSE(copies.make_room(range(1), {999, kPlenty}));
}

TEST(DeviceCopies, GoOnlyForASecondJobAndTheLeastRecentFirst) {
    const Room room{3000, kPlenty};
    DeviceCopies copies;
    for (const std::uint64_t id : {1, 2, 3}) ASSERT_TRUE(ask_all(copies, range(id), room));
    ASSERT_TRUE(ask_all(copies, range(1), room));
    EXPECT_FALSE(ask_all(copies, range(4), room));  // read for the first time
    copies.begin_job();
    copies.ask(range(4), 1000);
    EXPECT_EQ(copies.make_room(range(4), room), Ids{2});
    // Room counts what goes.
    EXPECT_EQ(copies.make_room(range(4), {3000, 1000}), Ids{2});
    EXPECT_FALSE(copies.make_room(range(4), {3000, 999}));
    EXPECT_EQ(copies.make_room(range(4), {2500, kPlenty}), (Ids{2, 3}));
    EXPECT_EQ(copies.make_room(range(4), {1000, kPlenty}), (Ids{2, 3, 1}));
}

TEST(DeviceCopies, StayWhileTheirJobRuns) {
    const Room room{3000, kPlenty};
    DeviceCopies copies;
    for (const std::uint64_t id : {1, 2, 3}) ASSERT_TRUE(ask_all(copies, range(id), room));
    EXPECT_FALSE(ask_all(copies, range(4), room));
    copies.begin_job();
    for (const std::uint64_t id : {1, 3}) EXPECT_TRUE(copies.ask(range(id), 1000));
    copies.ask(range(4), 1000);
    EXPECT_EQ(copies.make_room(range(4), room), Ids{2});
    EXPECT_TRUE(copies.ask(range(2), 1000));
    EXPECT_FALSE(copies.make_room(range(4), room));
}

TEST(DeviceCopies, KnowWhichRangesAreGone) {
    ResidentRanges ranges;
    DeviceCopies copies;
    for (const std::uint64_t id : {1, 2, 3}) ranges.add(range(id));
    ASSERT_TRUE(ask_all(copies, range(1), {kPlenty, kPlenty}));
    ASSERT_TRUE(ask_all(copies, range(2), {kPlenty, kPlenty}));
    copies.ask(range(3), 10);
    EXPECT_EQ(copies.gone(ranges), Ids());
    ranges.remove(2);
    ranges.remove(3);
    EXPECT_EQ(copies.gone(ranges), Ids{2});
    EXPECT_EQ(copies.gone(ranges), Ids{2});
    copies.remove(2);
    EXPECT_EQ(copies.bytes(), 1000u);
    EXPECT_EQ(copies.gone(ranges), Ids());
}

TEST(DeviceCopies, NeverTakeMoreThanTheirPart) {
    std::mt19937 random(1);
    const Room room{10000, kPlenty};
    DeviceCopies copies;
    std::map<std::uint64_t, std::size_t> sizes;
    for (int job = 0; job < 20000; ++job) {
        const std::uint64_t id = 1 + random() % 40;
        const auto [at, first] = sizes.try_emplace(id, 1 + random() % 4000);
        ask_all(copies, range(id, at->second), room);
        ASSERT_LE(copies.bytes(), room.most);
    }
    for (const auto& [id, size] : sizes) copies.remove(id);
    EXPECT_EQ(copies.bytes(), 0u);
}

}  // namespace
}  // namespace gputext
