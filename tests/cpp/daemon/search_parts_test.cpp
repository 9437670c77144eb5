#include "cpp/daemon/search_parts.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "cpp/daemon/fake_device.hpp"
#include "cpp/daemon/shared_knn.hpp"
#include "cpp/knn/neighbors.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using namespace testing;
using By = SearchShares::By;

Neighbors one_answer(const SearchParts& parts) {
    Neighbors all;
    all.begins.push_back(0);
    for (const Neighbors& part : parts.answers()) {
        const std::uint64_t first = all.items.size();
        for (std::size_t i = 1; i < part.begins.size(); ++i)
            all.begins.push_back(first + part.begins[i]);
        all.items.insert(all.items.end(), part.items.begin(), part.items.end());
        all.distances.insert(all.distances.end(), part.distances.begin(), part.distances.end());
    }
    return all;
}

void expect_same(const Neighbors& a, const Neighbors& b) {
    ASSERT_EQ(a.begins, b.begins);
    ASSERT_EQ(a.items, b.items);
    ASSERT_EQ(a.distances, b.distances);
}

std::vector<std::uint32_t> random_keys(RandomRows& random, std::size_t count) {
    std::vector<std::uint32_t> keys(count);
    for (auto& key : keys) key = static_cast<std::uint32_t>(random.below(10));
    return keys;
}

TEST(SearchParts, AnswerAsTheWholeSearchDoes) {
    RandomRows random;
    Execution execution(2);
    for (int round = 0; round < 300; ++round) {
        const Shape shape = kAllShapes[random.below(std::size(kAllShapes))];
        const bool sparse = shape == Shape::sparse && random.below(2) == 0;
        const std::size_t d = 1 + random.below(6), q = random.below(30), n = random.below(60);
        const ElementType type = sparse ? ElementType::float32 : ElementType::float64;
        const TypedRows queries(random.rows(shape, q, d), type, d, sparse);
        const TypedRows items(random.rows(shape, n, d), type, d, sparse);
        const auto query_keys = random_keys(random, q), item_keys = random_keys(random, n);
        const RowKeys keys = random.below(2) == 0 ? RowKeys{} : RowKeys{query_keys, item_keys};
        KnnParameters parameters{.k = 1 + random.below(12), .metric = Metric::euclidean};
        if (random.below(4) == 0) parameters.k = KnnParameters::all_items;
        if (random.below(4) == 0) parameters.radius = 1;
        const auto whole = knn(parameters, queries.vectors(), items.vectors(), keys, execution);
        ASSERT_TRUE(whole.ok());
        for (const By by : {By::queries, By::items}) {
            const std::size_t count = 1 + random.below(5);
            SearchParts parts(queries.vectors(), items.vectors(), keys, by,
                              even_parts(by == By::queries ? q : n, count));
            ASSERT_EQ(parts.size(), count);
            for (std::size_t part = 0; part < count; ++part) {
                auto found = knn(parameters, parts.queries(part), parts.items(part),
                                 parts.keys(part), execution);
                ASSERT_TRUE(found.ok()) << found.status().message();
                parts.answer(part) = std::move(*found);
            }
            ASSERT_TRUE(parts.merge({parameters.k}, execution).ok());
            ASSERT_NO_FATAL_FAILURE(expect_same(one_answer(parts), *whole));
            const KnnReply reply = knn_reply({}, static_cast<std::uint32_t>(q), parts.answers());
            EXPECT_EQ(reply.neighbors, whole->items.size());
        }
    }
}

TEST(SearchParts, KeepToTheMemoryOfAnswers) {
    RandomRows random;
    Execution execution(2);
    const TypedRows rows(random.rows(Shape::gaussian, 40, 3), ElementType::float32, 3);
    const auto merged = [&](By by, std::uint64_t bytes, bool stopped = false) {
        SearchParts parts(rows.vectors(), rows.vectors(), {}, by, even_parts(40, 2));
        for (std::size_t part = 0; part < 2; ++part)
            parts.answer(part) =
                *knn({.k = 5}, parts.queries(part), parts.items(part), {}, execution);
        if (stopped) execution.request_stop();
        return parts.merge({5, bytes}, execution).code();
    };
    // 200 neighbors; by items each part has as many, and they are there beside the merged ones.
    const std::uint64_t all = 200 * kBytesOfNeighbor;
    EXPECT_EQ(merged(By::queries, all), ErrorCode::ok);
    EXPECT_EQ(merged(By::queries, all - 1), ErrorCode::memory_limit);
    EXPECT_EQ(merged(By::items, 2 * all), ErrorCode::ok);
    EXPECT_EQ(merged(By::items, 2 * all - 1), ErrorCode::memory_limit);
    EXPECT_EQ(most_item_parts({5, 2 * all}, 40, 40), 2u);
    EXPECT_EQ(most_item_parts({5, 2 * all - 1}, 40, 40), 1u);
    EXPECT_EQ(most_item_parts({5, 1}, 40, 40), 1u);
    EXPECT_GE(most_item_parts({5}, 40, 40), 1000u);
    EXPECT_GE(most_item_parts({5}, 0, 0), 1000u);
    EXPECT_EQ(merged(By::items, 2 * all, true), ErrorCode::cancelled);
}

TEST(SearchParts, AreAsManyAsPay) {
    const auto shares = [](std::size_t queries, std::size_t items, std::size_t d, bool kept,
                           KnnParameters parameters = {.k = 100}) {
        const Vectors of{ElementType::float32, queries, d, nullptr, {}, {}};
        const Vectors among{ElementType::float32, items, d, nullptr, {}, {}};
        return best_shares(parameters, of, among, kept, 4, 16);
    };
    const std::size_t million = 1000000;
    EXPECT_EQ(shares(0, 0, 0, false).parts, 1u);
    EXPECT_EQ(shares(5000, 20000, 41, false).parts, 1u);
    EXPECT_EQ(shares(1, 10000, 768, true).parts, 1u);
    // Few queries: each device goes through its own items.
    for (const bool kept : {false, true})
        for (const std::size_t queries : {1, 16, 100}) {
            EXPECT_EQ(shares(queries, million, 768, kept).by, By::items);
            EXPECT_GE(shares(queries, million, 768, kept).parts, kept ? 2u : 3u);
        }
    // Kept items are read in less time than a second device takes to begin, and compared meanwhile.
    for (const std::size_t queries : {1, 64}) {
        EXPECT_EQ(shares(queries, 300000, 768, true).parts, 1u);
        EXPECT_GE(shares(queries, 300000, 768, false).parts, 2u);
    }
    // Many: each device has its own queries, unless the items take long to upload and the answers
    // are few.
    for (const std::size_t queries : {1000, 100000}) {
        EXPECT_EQ(shares(queries, million, 768, true).by, By::queries);
        EXPECT_EQ(shares(queries, million, 768, true).parts, 4u);
    }
    EXPECT_EQ(shares(100000, million, 768, false, {.k = 10}).by, By::items);
    EXPECT_EQ(shares(100000, million, 768, false, {.k = 10}).parts, 4u);
    EXPECT_EQ(shares(100000, million, 768, false, {.k = 100}).by, By::queries);
    EXPECT_EQ(shares(100000, 100000, 16, false).by, By::queries);
    EXPECT_EQ(shares(100000, 100000, 16, false).parts, 4u);
    // Ties, and answers for which there is no room twice, are not merged.
    EXPECT_EQ(shares(16, million, 768, true, {.k = 100, .include_ties = true}).by, By::queries);
    EXPECT_EQ(shares(16, million, 768, true, {.k = 100, .answer_limit = 40000}).by, By::queries);
}

TEST(SharedKnn, NamesRowsAsTheWholeSearchDoes) {
    Execution execution(2);
    const std::size_t d = 64, n = 200000;
    std::vector<float> elements(n * d, 1.0f);
    const Vectors items{ElementType::float32, n, d, elements.data(), {}, {}};
    Vectors queries = items;
    queries.rows = 4;
    const auto prepare = [&](std::size_t devices) {
        return SharedKnn().prepare({.k = 2}, queries, items, {}, devices, execution);
    };
    EXPECT_EQ(*prepare(1), 1u);
    EXPECT_EQ(*prepare(2), 2u);
    elements[150000 * d + 1] = std::numeric_limits<float>::infinity();
    const auto whole = knn({.k = 2}, queries, items, {}, execution);
    EXPECT_EQ(prepare(2).status().message(), whole.status().message());
    EXPECT_NE(whole.status().message().find("item 150000 "), std::string::npos);
    EXPECT_EQ(SharedKnn().prepare({.k = 0}, queries, items, {}, 2, execution).status().code(),
              ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace gputext
