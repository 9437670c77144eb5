#include "cpp/knn/neighbors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/support/neighbor_rows.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

TEST(ScatteredNeighbors, ArePutInTheOrderOfQueries) {
    std::mt19937_64 random(testing::seed());
    for (const std::size_t queries : {0, 1, 100, 50'000}) {
        Neighbors wanted;
        wanted.begins.assign(1, 0);
        std::vector<std::uint32_t> order;
        for (std::size_t q = 0; q < queries; ++q) {
            for (std::size_t n = random() % 4; n > 0; --n) {
                wanted.items.push_back(static_cast<std::uint32_t>(random()));
                wanted.distances.push_back(static_cast<double>(random() % 1000));
            }
            wanted.begins.push_back(wanted.items.size());
            // Those without neighbors may be in no list.
            if (wanted.begins[q] < wanted.begins[q + 1] || random() % 2 == 0)
                order.push_back(static_cast<std::uint32_t>(q));
        }
        std::shuffle(order.begin(), order.end(), random);
        ScatteredNeighbors scattered;
        std::uint64_t lists = 0;
        for (std::size_t begin = 0; begin < order.size(); ++lists) {
            const std::size_t count = std::min(order.size() - begin, 1 + random() % 30'000);
            const auto first = order.begin() + static_cast<std::ptrdiff_t>(begin);
            std::vector<std::uint32_t> some(first, first + static_cast<std::ptrdiff_t>(count));
            Neighbors found;
            found.begins.assign(1, 0);
            found.rescored = 2;
            found.escalated = 1;
            for (const std::uint32_t query : some) {
                for (auto i = wanted.begins[query]; i < wanted.begins[query + 1]; ++i) {
                    found.items.push_back(wanted.items[i]);
                    found.distances.push_back(wanted.distances[i]);
                }
                found.begins.push_back(found.items.size());
            }
            scattered.add(std::move(some), std::move(found));
            begin += count;
        }
        Execution execution(3);
        Neighbors answer;
        ASSERT_TRUE(scattered.put_together(queries, execution, answer).ok());
        EXPECT_EQ(testing::differing(answer, wanted), 0u);
        EXPECT_EQ(answer.rescored, 2 * lists);
        EXPECT_EQ(answer.escalated, lists);
    }
}

TEST(ScatteredNeighbors, CanBeCancelled) {
    ScatteredNeighbors scattered;
    Neighbors found;
    found.begins = {0, 1};
    found.items = {0};
    found.distances = {0};
    scattered.add({3}, std::move(found));
    Execution execution(1);
    execution.request_stop();
    Neighbors answer;
    EXPECT_EQ(scattered.put_together(5, execution, answer).code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
