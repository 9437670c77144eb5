#include "cpp/knn/neighbors.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "cpp/knn/added_neighbors.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::RandomStrings;

/// The k nearest of items [begin, end) for each query, of few distances, so that many are equal.
Neighbors nearest(const std::vector<std::vector<double>>& distances, std::size_t begin,
                  std::size_t end, std::size_t k) {
    Neighbors answer;
    answer.begins.push_back(0);
    answer.rescored = end - begin;
    for (const auto& row : distances) {
        std::vector<std::uint32_t> items;
        for (std::size_t i = begin; i < end; ++i)
            if (row[i] < 5) items.push_back(static_cast<std::uint32_t>(i - begin));
        std::stable_sort(items.begin(), items.end(), [&](std::uint32_t a, std::uint32_t b) {
            return row[begin + a] < row[begin + b];
        });
        items.resize(std::min(k, items.size()));
        for (const std::uint32_t item : items) {
            answer.items.push_back(item);
            answer.distances.push_back(row[begin + item]);
        }
        answer.begins.push_back(answer.items.size());
    }
    return answer;
}

TEST(MergeNeighbors, IsASearchInTheWhole) {
    RandomStrings random;
    Execution execution(1);
    for (int round = 0; round < 2000; ++round) {
        const std::size_t n = random.below(40), queries = random.below(6);
        std::vector<std::vector<double>> distances(queries, std::vector<double>(n));
        for (auto& row : distances)
            for (double& distance : row) distance = static_cast<double>(random.below(6));
        const std::size_t k =
            random.below(8) == 0 ? KnnParameters::all_items : 1 + random.below(n + 2);
        std::vector<std::uint32_t> firsts{0};
        for (std::size_t part = random.below(4); part > 0; --part)
            firsts.push_back(static_cast<std::uint32_t>(random.below(n + 1)));
        std::sort(firsts.begin(), firsts.end());
        std::vector<Neighbors> parts;
        for (std::size_t part = 0; part < firsts.size(); ++part)
            parts.push_back(nearest(distances, firsts[part],
                                    part + 1 < firsts.size() ? firsts[part + 1] : n, k));
        Neighbors merged;
        ASSERT_TRUE(merge_neighbors(parts, firsts, k, execution, merged).ok());
        const Neighbors wanted = nearest(distances, 0, n, k);
        ASSERT_EQ(merged.begins, wanted.begins);
        ASSERT_EQ(merged.items, wanted.items);
        ASSERT_EQ(merged.distances, wanted.distances);
        ASSERT_EQ(merged.rescored, wanted.rescored);
    }
}

TEST(MergeNeighbors, CanBeStopped) {
    const std::vector<Neighbors> parts(2, nearest({{1, 2, 3}}, 0, 3, 3));
    const std::vector<std::uint32_t> firsts{0, 3};
    Execution execution(1);
    execution.request_stop();
    Neighbors merged;
    EXPECT_EQ(merge_neighbors(parts, firsts, 3, execution, merged).code(), ErrorCode::cancelled);
}

TEST(MergeAdded, IsASearchInTheWhole) {
    RandomStrings random;
    for (int round = 0; round < 2000; ++round) {
        const std::size_t n = random.below(40), queries = random.below(6);
        std::vector<std::vector<double>> distances(queries, std::vector<double>(n)), old, later;
        for (auto& row : distances)
            for (double& distance : row) distance = static_cast<double>(random.below(6));
        old.resize(queries);
        later.resize(queries);
        // Where an item comes in the order of all, by its number behind the others if it was added.
        std::vector<std::uint32_t> before, number_of(n), added;
        std::size_t first = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const bool is_added = random.below(3) == 0;
            for (std::size_t q = 0; q < queries; ++q)
                (is_added ? later : old)[q].push_back(distances[q][i]);
            if (is_added) {
                before.push_back(static_cast<std::uint32_t>(first));
                added.push_back(static_cast<std::uint32_t>(i));
            } else {
                number_of[i] = static_cast<std::uint32_t>(first++);
            }
        }
        for (std::size_t i = 0; i < added.size(); ++i)
            number_of[added[i]] = static_cast<std::uint32_t>(first + i);
        const std::size_t k =
            random.below(8) == 0 ? KnnParameters::all_items : 1 + random.below(n + 2);
        Neighbors merged = nearest(old, 0, first, k);
        ASSERT_TRUE(
            merge_added(nearest(later, 0, added.size(), k), before, first, k, Stop(), merged).ok());
        Neighbors wanted = nearest(distances, 0, n, k);
        for (std::uint32_t& item : wanted.items) item = number_of[item];
        ASSERT_EQ(merged.begins, wanted.begins);
        ASSERT_EQ(merged.items, wanted.items);
        ASSERT_EQ(merged.distances, wanted.distances);
        ASSERT_EQ(merged.rescored, wanted.rescored);
    }
}

TEST(MergeAdded, CanBeStopped) {
    Neighbors merged = nearest({{1, 2, 3}}, 0, 3, 3);
    const Neighbors added = merged;
    const std::vector<std::uint32_t> before{0, 0, 0};
    const Stop stop{[](void*) { return true; }, nullptr};
    EXPECT_EQ(merge_added(added, before, 3, 3, stop, merged).code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
