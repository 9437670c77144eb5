#include "cpp/knn/partial_answers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::RandomStrings;

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

struct Row {
    std::uint32_t query;
    FoundItem found;
};

using Answers = std::map<std::uint32_t, std::vector<std::pair<double, std::uint64_t>>>;

/// All rows of each query, sorted and cut. Of two that are equally far the one with the smaller
/// number is nearer.
Answers plain_answers(const std::vector<Row>& rows, std::size_t k) {
    Answers answers;
    for (const Row& row : rows) answers[row.query].emplace_back(row.found.distance, row.found.item);
    for (auto& [query, found] : answers) {
        std::ranges::sort(found);
        found.resize(std::min(found.size(), k));
    }
    return answers;
}

Answers answers_of(const PartialAnswers& merged) {
    Answers answers;
    for (std::uint32_t query = 0; query < merged.queries(); ++query)
        for (const FoundItem& found : merged.of(query))
            answers[query].emplace_back(found.distance, found.item);
    return answers;
}

/// `distances` different distances: few of them make ties.
std::vector<Row> random_rows(RandomStrings& random, std::size_t queries, std::size_t distances) {
    std::vector<Row> rows(random.below(3000));
    for (Row& row : rows)
        row = {static_cast<std::uint32_t>(random.below(queries)),
               {static_cast<double>(random.below(distances)) / 8 - 3, random.below(500)}};
    return rows;
}

TEST(PartialAnswers, AreThoseOfASortOfAllRows) {
    RandomStrings random;
    for (int round = 0; round < 300; ++round) {
        const auto rows = random_rows(random, 1 + random.below(40), 1 + random.below(200));
        const std::size_t k = round % 5 == 0 ? PartialAnswers::kAll : 1 + random.below(60);
        PartialAnswers merged(k, FoundTies::by_item, kUnlimited);
        for (const Row& row : rows) {
            if (!merged.wants(row.query, row.found.distance)) continue;
            ASSERT_TRUE(merged.add(row.query, row.found).ok());
        }
        Execution execution(3);
        ASSERT_TRUE(merged.finish(execution).ok());
        ASSERT_EQ(answers_of(merged), plain_answers(rows, k));
    }
}

/// Items are numbered as they come, and rank by an order that is known at the end only.
TEST(PartialAnswers, OfItemsWhoseOrderIsKnownLater) {
    RandomStrings random;
    for (int round = 0; round < 300; ++round) {
        auto rows = random_rows(random, 1 + random.below(40), 1 + random.below(30));
        const std::size_t k = 1 + random.below(60);
        std::vector<std::uint32_t> ranks(rows.size());
        std::iota(ranks.begin(), ranks.end(), 0u);
        for (std::size_t i = ranks.size(); i > 1; --i)
            std::swap(ranks[i - 1], ranks[random.below(i)]);
        PartialAnswers merged(k, FoundTies::open, kUnlimited);
        for (std::uint32_t i = 0; i < rows.size(); ++i) {
            ASSERT_TRUE(merged.add(rows[i].query, {rows[i].found.distance, i}).ok());
            rows[i].found.item = ranks[i];
        }
        Execution execution(3);
        ASSERT_TRUE(merged.renumber(ranks, execution).ok());
        ASSERT_TRUE(merged.finish(execution).ok());
        ASSERT_EQ(answers_of(merged), plain_answers(rows, k));
    }
}

/// Rows that were found side by side, as other processes leave them
TEST(PartialAnswers, OfPieces) {
    RandomStrings random;
    for (int round = 0; round < 200; ++round) {
        const auto rows = random_rows(random, 1 + random.below(40), 1 + random.below(200));
        const std::size_t k = 1 + random.below(60);
        std::vector<FoundItem> found;
        found.reserve(rows.size());
        std::vector<FoundPiece> pieces;
        for (const Row& row : rows) {
            found.push_back(row.found);
            if (!pieces.empty() && pieces.back().query == row.query)
                pieces.back().found = {pieces.back().found.data(), pieces.back().found.size() + 1};
            else
                pieces.push_back({row.query, {&found.back(), 1}});
        }
        PartialAnswers merged(k, FoundTies::by_item, kUnlimited);
        Execution execution(3);
        ASSERT_TRUE(merged.add(pieces, execution).ok());
        ASSERT_TRUE(merged.finish(execution).ok());
        ASSERT_EQ(answers_of(merged), plain_answers(rows, k));
    }
}

TEST(PartialAnswers, KeepNoMoreThanTheyNeed) {
    PartialAnswers merged(100, FoundTies::by_item, std::size_t{1} << 20);
    for (std::uint32_t i = 0; i < 1000000; ++i)
        ASSERT_TRUE(merged.add(i % 50, {-static_cast<double>(i), i}).ok());
    EXPECT_LE(merged.bytes(), 50 * 200 * sizeof(FoundItem) + 64 * 64);
}

TEST(PartialAnswers, EndWithAnErrorBeyondTheLimit) {
    PartialAnswers merged(PartialAnswers::kAll, FoundTies::by_item, 100000);
    Status status;
    std::uint64_t added = 0;
    while (status.ok() && added < 100000) {
        status = merged.add(0, {1.0, added});
        ++added;
    }
    EXPECT_EQ(status.code(), ErrorCode::memory_limit);
    EXPECT_LE(merged.bytes(), 100000u);
}

TEST(PartialAnswers, CanBeStopped) {
    PartialAnswers merged(1, FoundTies::by_item, kUnlimited);
    ASSERT_TRUE(merged.add(1000, {1.0, 1}).ok());
    Execution execution(2);
    execution.request_stop();
    EXPECT_EQ(merged.finish(execution).code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
