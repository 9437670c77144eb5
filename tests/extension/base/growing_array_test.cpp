// Before PostgreSQL's headers, whose macros it does not bear.
#include <gtest/gtest.h>

#include <cstdint>

#include "extension/base/growing_array.hpp"

namespace gputext {
namespace {

TEST(GrowingArray, KeepsItsElementsWhileItGrows) {
    GrowingArray<std::uint64_t> array;
    EXPECT_TRUE(array.empty());
    EXPECT_TRUE(array.full());
    for (std::uint64_t i = 0; i < 100000; ++i) {
        if (array.full()) array.reserve(array.size() + 1);
        ASSERT_FALSE(array.full());
        array.append(3 * i);
    }
    ASSERT_EQ(array.size(), 100000u);
    for (std::uint64_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], 3 * i);
}

TEST(GrowingArray, AppendsZerosAndDropsElements) {
    GrowingArray<int> array;
    array.resize(10);
    for (int i = 0; i < 10; ++i) array.set(i, 7);
    array.resize(5);
    array.resize(1000);
    ASSERT_EQ(array.size(), 1000u);
    for (std::size_t i = 0; i < array.size(); ++i) ASSERT_EQ(array[i], i < 5 ? 7 : 0);
    array.clear();
    EXPECT_TRUE(array.empty());
}

TEST(GrowingArray, GivesItsMemoryAway) {
    GrowingArray<int> array;
    array.resize(3);
    const int* const place = array.data();
    GrowingArray<int> other(std::move(array));
    EXPECT_EQ(other.data(), place);
    EXPECT_EQ(other.size(), 3u);
    EXPECT_EQ(array.size(), 0u);
}

}  // namespace
}  // namespace gputext
