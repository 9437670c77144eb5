#include "cpp/knn/nearest_lists.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <limits>
#include <random>
#include <span>
#include <thread>
#include <tuple>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

constexpr double kEverywhere = std::numeric_limits<double>::infinity();

constexpr Stop kNever;

/// (distance, item, class), which is the order of an answer.
using Row = std::tuple<double, std::uint32_t, std::uint32_t>;

std::vector<Row> rows_of(const std::vector<Candidate>& candidates) {
    std::vector<Row> rows;
    for (const Candidate& c : candidates) rows.emplace_back(c.distance, c.item, c.item_class);
    return rows;
}

/// What the lists must hold: all candidates of a query sorted, each once.
std::vector<Row> sorted_nearest(const std::vector<Candidate>& all, std::size_t k, double radius,
                                bool include_ties) {
    std::vector<Row> rows = rows_of(all);
    std::erase_if(rows, [radius](const Row& row) { return std::get<0>(row) > radius; });
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    std::size_t end = std::min(k, rows.size());
    while (include_ties && end > 0 && end < rows.size() &&
           std::get<0>(rows[end]) == std::get<0>(rows[end - 1]))
        ++end;
    rows.resize(end);
    return rows;
}

class Candidates {
public:
    /// Distances that are whole numbers below `distances`, so that many are ties. Some candidates
    /// come twice.
    Candidates(std::size_t count, std::size_t distances) {
        for (std::uint32_t item = 0; item < count; ++item) {
            const Candidate one{static_cast<double>(below(distances)), item, item / 3};
            list_.push_back(one);
            if (below(10) == 0) list_.push_back(one);
        }
        std::shuffle(list_.begin(), list_.end(), generator_);
    }
    const std::vector<Candidate>& list() const { return list_; }
    std::size_t below(std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator_);
    }

private:
    inline static std::mt19937_64 generator_{testing::seed()};
    std::vector<Candidate> list_;
};

/// Adds pieces of random sizes, those only that are within the limit, as a search does.
Status add_in_pieces(NearestLists& lists, std::size_t query, std::span<const Candidate> candidates,
                     std::mt19937_64 generator) {
    while (!candidates.empty()) {
        const std::size_t size =
            1 + std::uniform_int_distribution<std::size_t>(0, candidates.size() - 1)(generator);
        const double limit = lists.limit(query);
        std::vector<Candidate> piece;
        for (const Candidate& c : candidates.first(size))
            if (c.distance <= limit) piece.push_back(c);
        GPUTEXT_TRY(lists.add(query, piece, kNever));
        EXPECT_TRUE(piece.empty());
        candidates = candidates.subspan(size);
    }
    return {};
}

TEST(NearestLists, HoldWhatASortGives) {
    for (const std::size_t count : {0, 1, 5, 100, 3000})
        for (const std::size_t k : {1, 2, 7, 100, 5000})
            for (const std::size_t distances : {1, 10, 100000})
                for (const double radius : {kEverywhere, 6.0, -1.0})
                    for (const bool include_ties : {false, true}) {
                        SCOPED_TRACE(::testing::Message()
                                     << "candidates " << count << ", k " << k << ", distances "
                                     << distances << ", radius " << radius << ", ties "
                                     << include_ties << ", seed " << testing::seed());
                        MemoryBudget budget(SIZE_MAX);
                        NearestLists lists(3, k, radius, include_ties, budget);
                        std::vector<Candidates> given;
                        for (std::size_t query = 0; query < 3; ++query) {
                            given.emplace_back(count, distances);
                            ASSERT_TRUE(add_in_pieces(lists, query, given[query].list(),
                                                      std::mt19937_64(query + count))
                                            .ok());
                        }
                        for (std::size_t query = 0; query < 3; ++query) {
                            const auto wanted =
                                sorted_nearest(given[query].list(), k, radius, include_ties);
                            // The limit is never below what the answer holds.
                            EXPECT_LE(lists.limit(query), radius);
                            if (wanted.size() >= k)
                                EXPECT_GE(lists.limit(query), std::get<0>(wanted[k - 1]));
                            else
                                EXPECT_EQ(lists.limit(query), radius);
                            std::vector<Candidate> nearest;
                            ASSERT_TRUE(lists.take(query, nearest, kNever).ok());
                            ASSERT_EQ(rows_of(nearest), wanted);
                        }
                        EXPECT_EQ(budget.used(), 0u);
                    }
}

TEST(NearestLists, TheLimitIsTheDistanceOfTheLastOfAFullList) {
    MemoryBudget budget(SIZE_MAX);
    NearestLists lists(1, 3, kEverywhere, false, budget);
    std::vector<Candidate> some{{5, 0, 0}, {4, 1, 1}};
    ASSERT_TRUE(lists.add(0, some, kNever).ok());
    EXPECT_EQ(lists.limit(0), kEverywhere);
    some = {{3, 2, 2}, {9, 3, 3}, {8, 4, 4}, {7, 5, 5}};
    ASSERT_TRUE(lists.add(0, some, kNever).ok());
    EXPECT_EQ(lists.limit(0), 5);
}

TEST(NearestLists, ThreadsThatAddAtOnceFindTheSame) {
    constexpr std::size_t queries = 100, threads = 4, k = 20;
    for (const bool include_ties : {false, true}) {
        MemoryBudget budget(SIZE_MAX);
        NearestLists lists(queries, k, 50, include_ties, budget);
        std::vector<Candidates> given;
        for (std::size_t query = 0; query < queries; ++query) given.emplace_back(2000, 60);
        std::atomic<int> failed{0};
        std::vector<std::thread> adding;
        for (std::size_t thread = 0; thread < threads; ++thread)
            adding.emplace_back([&, thread] {
                for (std::size_t query = 0; query < queries; ++query) {
                    const std::span<const Candidate> all = given[query].list();
                    const std::size_t begin = all.size() * thread / threads;
                    const std::size_t end = all.size() * (thread + 1) / threads;
                    if (!add_in_pieces(lists, query, all.subspan(begin, end - begin),
                                       std::mt19937_64(query))
                             .ok())
                        ++failed;
                }
            });
        for (std::thread& thread : adding) thread.join();
        ASSERT_EQ(failed, 0);
        for (std::size_t query = 0; query < queries; ++query) {
            std::vector<Candidate> nearest;
            ASSERT_TRUE(lists.take(query, nearest, kNever).ok());
            ASSERT_EQ(rows_of(nearest), sorted_nearest(given[query].list(), k, 50, include_ties))
                << "query " << query << ", seed " << testing::seed();
        }
        EXPECT_EQ(budget.used(), 0u);
    }
}

TEST(NearestLists, ThreadsThatAddToOneListFindTheSame) {
    constexpr std::size_t threads = 4, k = 1000;
    MemoryBudget budget(SIZE_MAX);
    NearestLists lists(1, k, kEverywhere, true, budget);
    const Candidates given(200000, 100000);
    const std::span<const Candidate> all = given.list();
    std::atomic<int> failed{0};
    std::vector<std::thread> adding;
    for (std::size_t thread = 0; thread < threads; ++thread)
        adding.emplace_back([&, thread] {
            std::vector<Candidate> piece;
            for (std::size_t i = thread; i < all.size(); i += threads) {
                piece.assign(1, all[i]);
                if (!lists.add(0, piece, kNever).ok()) ++failed;
            }
        });
    for (std::thread& thread : adding) thread.join();
    ASSERT_EQ(failed, 0);
    std::vector<Candidate> nearest;
    ASSERT_TRUE(lists.take(0, nearest, kNever).ok());
    EXPECT_EQ(rows_of(nearest), sorted_nearest(given.list(), k, kEverywhere, true))
        << "seed " << testing::seed();
    EXPECT_EQ(budget.used(), 0u);
}

TEST(NearestLists, LongListsAreSorted) {
    for (const std::size_t count : {32768, 32769, 70000, 200000}) {
        MemoryBudget budget(SIZE_MAX);
        NearestLists lists(1, count, kEverywhere, false, budget);
        const Candidates given(count, count / 2);
        std::vector<Candidate> candidates = given.list(), nearest;
        ASSERT_TRUE(lists.add(0, candidates, kNever).ok());
        ASSERT_TRUE(lists.take(0, nearest, kNever).ok());
        EXPECT_EQ(rows_of(nearest), sorted_nearest(given.list(), count, kEverywhere, false))
            << count << " candidates, seed " << testing::seed();
    }
}

TEST(NearestLists, TakeTheirMemoryFromTheBudget) {
    MemoryBudget budget(1000 * sizeof(Candidate));
    NearestLists lists(2, 5000, kEverywhere, false, budget);
    std::vector<Candidate> first(600, {1, 0, 0}), second(600, {1, 0, 0});
    ASSERT_TRUE(lists.add(0, first, kNever).ok());
    EXPECT_GE(budget.used(), 600 * sizeof(Candidate));
    const Status status = lists.add(1, second, kNever);
    EXPECT_EQ(status.code(), ErrorCode::memory_limit);
    std::vector<Candidate> nearest;
    ASSERT_TRUE(lists.take(0, nearest, kNever).ok());
    EXPECT_EQ(budget.used(), 0u);
    ASSERT_TRUE(lists.add(1, second, kNever).ok());
}

TEST(NearestLists, StopWithinALongSort) {
    struct Asked {
        int times, most;
    };
    const auto after_some = [](void* context) {
        auto& asked = *static_cast<Asked*>(context);
        return ++asked.times > asked.most;
    };
    constexpr std::size_t many = 200000;  // seven pieces of 32768
    MemoryBudget budget(SIZE_MAX);
    NearestLists lists(1, many, kEverywhere, true, budget);
    std::vector<Candidate> candidates, nearest;
    for (std::uint32_t item = 0; item + 1 < many; ++item)
        candidates.push_back({static_cast<double>(many - item), item, item});
    ASSERT_TRUE(lists.add(0, candidates, kNever).ok());
    Asked asked{0, 3};
    EXPECT_EQ(lists.take(0, nearest, {after_some, &asked}).code(), ErrorCode::cancelled);
    EXPECT_EQ(asked.times, 4);

    // Between the pieces and before each of six merges.
    candidates = std::move(nearest);
    ASSERT_TRUE(lists.add(0, candidates, kNever).ok());
    asked = {0, INT_MAX};
    EXPECT_TRUE(lists.take(0, nearest, {after_some, &asked}).ok());
    EXPECT_GE(asked.times, 12);
    EXPECT_EQ(nearest.size(), many - 1);
}

}  // namespace
}  // namespace gputext
