#include "cpp/base/row_buckets.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using Keys = std::vector<std::uint32_t>;

Keys expected_order(const Keys& keys) {
    Keys order(keys.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
    return order;
}

TEST(RowBuckets, OrderAsAStableSort) {
    std::mt19937_64 random(testing::seed());
    for (const std::uint32_t largest : {0u, 1u, 255u, 70000u, UINT32_MAX - 1})
        for (const std::size_t rows : {0, 1, 2, 1000, 70000, 600000})
            for (const unsigned threads : {1u, 4u}) {
                Keys keys(rows);
                for (std::uint32_t& key : keys)
                    key = static_cast<std::uint32_t>(random() % (std::uint64_t{largest} + 1));
                if (rows > 1) keys[rows / 2] = largest;
                Execution execution(threads);
                Keys order;
                ASSERT_TRUE(order_by_key(keys, order, execution).ok());
                ASSERT_EQ(order, expected_order(keys)) << largest << ", " << rows;
            }
}

TEST(RowBuckets, StopWhenAsked) {
    Execution execution(2);
    execution.request_stop();
    Keys order;
    EXPECT_EQ(order_by_key(Keys(100000, 3), order, execution).code(), ErrorCode::cancelled);
}

TEST(Gather, PutsElementsInOrder) {
    std::mt19937_64 random(testing::seed());
    for (const std::size_t rows : {0, 1, 5000, 200000}) {
        Keys order(rows), from(rows), to(rows);
        std::iota(order.begin(), order.end(), 0u);
        std::shuffle(order.begin(), order.end(), random);
        for (std::uint32_t& value : from) value = static_cast<std::uint32_t>(random());
        Execution execution(3);
        ASSERT_TRUE(gather(
                        std::span<const std::uint32_t>(order), to.data(),
                        [&](std::uint32_t row) { return from[row]; }, execution)
                        .ok());
        for (std::size_t i = 0; i < rows; ++i) ASSERT_EQ(to[i], from[order[i]]);
    }
}

}  // namespace
}  // namespace gputext
