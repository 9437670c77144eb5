#include "cpp/knn/distinct_search.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <vector>

#include "tests/support/neighbor_rows.hpp"
#include "tests/support/plain_knn.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::DoubleRows;
using testing::plain_distance;
using testing::plain_neighbors;
using testing::RandomRows;
using testing::rows_of;
using testing::Shape;
using testing::TypedRows;

constexpr Metric kAllMetrics[] = {Metric::euclidean, Metric::cosine, Metric::inner_product,
                                  Metric::manhattan};

/// What a search was asked for.
struct Asked {
    std::size_t searches = 0, queries = 0, items = 0, k = 0;
    bool keys = false;
};

/// knn() merges equal rows itself: where the searched rows are distinct it does not.
class MergedSearch : public ::testing::Test {
protected:
    KnnFunction search() {
        return [this](const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
                      const RowKeys& keys) {
            asked = {asked.searches + 1, queries.rows, items.rows, parameters.k,
                     !keys.items.empty()};
            return knn(parameters, queries, items, keys, execution);
        };
    }

    Result<Neighbors> run(const KnnParameters& parameters, const TypedRows& queries,
                           const TypedRows& items, const RowKeys& keys = {}) {
        asked = {};
        return search_distinct_rows(parameters, queries.vectors(), items.vectors(), keys, search(),
                                    execution);
    }

    void expect_same(const KnnParameters& parameters, const TypedRows& queries,
                     const TypedRows& items, const RowKeys& keys = {}) {
        const auto found = run(parameters, queries, items, keys);
        ASSERT_TRUE(found.ok()) << found.status().message();
        const auto wanted = knn(parameters, queries.vectors(), items.vectors(), keys, execution);
        ASSERT_EQ(rows_of(*found), rows_of(*wanted));
        compared += queries.rows().size();
    }

    /// Also where the CPU's search errs.
    void expect_plain_answer(const KnnParameters& parameters, const TypedRows& queries,
                             const TypedRows& items, const RowKeys& keys = {}) {
        const auto found = run(parameters, queries, items, keys);
        ASSERT_TRUE(found.ok()) << found.status().message();
        const auto rows = rows_of(*found);
        for (std::size_t q = 0; q < rows.size(); ++q) {
            std::vector<bool> excluded(items.rows().size());
            for (std::size_t i = 0; i < excluded.size(); ++i) excluded[i] = !keys.differ(q, i);
            std::vector<testing::NeighborRow> wanted;
            for (const auto& [item, distance] :
                 plain_neighbors(parameters, queries.rows()[q], items.rows(), excluded))
                wanted.emplace_back(item, std::bit_cast<std::uint64_t>(distance));
            ASSERT_EQ(rows[q], wanted) << "query " << q;
        }
        compared += rows.size();
    }

    Execution execution{3};
    Asked asked;
    std::size_t compared = 0;
};

std::string name_of(Metric metric, std::size_t n, std::size_t d, const KnnParameters& parameters) {
    return "metric " + std::to_string(static_cast<int>(metric)) + ", n " + std::to_string(n) +
           ", d " + std::to_string(d) + ", k " + std::to_string(parameters.k) + ", radius " +
           std::to_string(parameters.radius) + (parameters.include_ties ? ", ties" : "");
}

/// Rows of small integers, of which there are few: copies, ties between classes, rows of zeros.
DoubleRows few_rows(RandomRows& random, std::size_t count, std::size_t d, std::size_t values) {
    DoubleRows rows(count, testing::DoubleRow(d));
    for (auto& row : rows)
        for (double& x : row)
            x = static_cast<double>(random.below(values)) - static_cast<double>(values / 2);
    return rows;
}

TEST_F(MergedSearch, EqualsAPlainSearch) {
    RandomRows random;
    std::size_t merged = 0, of = 0;
    for (int round = 0; round < (testing::kSanitized ? 200 : 1500); ++round) {
        const std::size_t n = 1 + random.below(120), count = 1 + random.below(60);
        const std::size_t d = 1 + random.below(3), values = 1 + random.below(4);
        const ElementType type = random.below(2) == 0 ? ElementType::float32 : ElementType::float64;
        const bool self = random.below(2) == 0;
        const auto rows = few_rows(random, n, d, values);
        const TypedRows items(rows, type, d);
        const TypedRows queries(self ? rows : few_rows(random, count, d, values), type, d);
        // Each its own, a few of each, many of each, one for all.
        std::vector<std::uint32_t> item_keys(n), query_keys(queries.rows().size());
        const std::size_t keys = random.below(5);
        const std::size_t groups = keys == 0 ? 1 : keys == 1 ? 4 : n / 2 + 1;
        for (auto* list : {&item_keys, &query_keys}) {
            std::iota(list->begin(), list->end(), 7u);
            if (keys < 3)
                for (auto& key : *list) key = static_cast<std::uint32_t>(random.below(groups));
        }
        const RowKeys row_keys =
            keys == 4 ? RowKeys{} : RowKeys{std::span(query_keys), std::span(item_keys)};
        const std::size_t ks[] = {1, 2, 3 + random.below(8), n, n + 3, KnnParameters::all_items};
        for (const Metric metric : kAllMetrics) {
            KnnParameters parameters{.k = ks[random.below(6)], .metric = metric};
            parameters.include_ties = random.below(3) == 0;
            if (random.below(3) == 0)
                parameters.radius =
                    plain_distance(metric, queries.rows()[0], items.rows()[random.below(n)])
                        .value_or(0.5);
            SCOPED_TRACE(name_of(metric, n, d, parameters) + ", keys " + std::to_string(keys));
            ASSERT_NO_FATAL_FAILURE(expect_plain_answer(parameters, queries, items, row_keys));
            merged += !asked.keys && asked.items < n;
            ++of;
        }
    }
    EXPECT_GT(merged, of / 2);
}

TEST_F(MergedSearch, EqualsTheCpusOnLargerTables) {
    RandomRows random;
    const std::size_t n = testing::kSanitized ? 300 : 1500;
    for (const Shape shape : {Shape::copies, Shape::grid, Shape::gaussian})
        for (const std::size_t d : {3, 6}) {
            const TypedRows items(random.rows(shape, n, d), ElementType::float32, d);
            const TypedRows queries(random.rows(shape, 200, d), ElementType::float32, d);
            std::vector<std::uint32_t> own(n), pairs(n), groups(n);
            std::iota(own.begin(), own.end(), 0u);
            for (std::uint32_t i = 0; i < n; ++i) pairs[i] = i / 2;
            for (auto& group : groups) group = static_cast<std::uint32_t>(random.below(4));
            for (const Metric metric : kAllMetrics)
                for (const std::size_t k : {std::size_t{1}, std::size_t{30}, n})
                    for (const bool ties : {false, true}) {
                        const KnnParameters parameters{
                            .k = k, .metric = metric, .include_ties = ties};
                        SCOPED_TRACE(name_of(metric, n, d, parameters));
                        ASSERT_NO_FATAL_FAILURE(expect_same(parameters, queries, items));
                        if (k == n) continue;
                        for (const auto& keys : {own, pairs, groups})
                            ASSERT_NO_FATAL_FAILURE(
                                expect_same(parameters, items, items, {keys, keys}));
                    }
        }
}

TEST_F(MergedSearch, LooksAtEqualRowsOnce) {
    const DoubleRows equal(3000, {1, 2});
    const TypedRows items(equal, ElementType::float32, 2);
    const auto found = run({.k = 10}, items, items);
    EXPECT_EQ(asked.items, 1u);
    EXPECT_EQ(asked.queries, 1u);
    EXPECT_EQ(asked.k, 1u);
    for (std::size_t q = 0; q < equal.size(); q += 997)
        for (std::size_t i = 0; i < 10; ++i) EXPECT_EQ(found->items[found->begins[q] + i], i);

    // A key takes one more class, and one that most items have takes too many.
    RandomRows random;
    const TypedRows grid(few_rows(random, 4000, 3, 9), ElementType::float32, 3);
    std::vector<std::uint32_t> own(4000), groups(4000);
    std::iota(own.begin(), own.end(), 0u);
    EXPECT_TRUE(run({.k = 10}, grid, grid, {own, own}).ok());
    EXPECT_EQ(asked.k, 11u);
    EXPECT_LE(asked.items, 729u);
    EXPECT_TRUE(run({.k = 10}, grid, grid, {groups, groups}).ok());
    EXPECT_EQ(asked.k, 10u);
    EXPECT_EQ(asked.items, 4000u);
}

TEST_F(MergedSearch, NamesRowsAsGiven) {
    DoubleRows rows(100, {1, 2});
    rows[70] = {std::nan(""), 1};
    const TypedRows bad(rows, ElementType::float32, 2), good({{1, 2}}, ElementType::float32, 2);
    EXPECT_EQ(run({}, good, bad).status().message(),
              "item 70 has an element that is not a finite number");
    EXPECT_EQ(run({}, bad, good).status().message(),
              "query 70 has an element that is not a finite number");
    EXPECT_EQ(run({.k = 0}, good, good).status().message(), "k must be at least 1");
    const std::vector<std::uint32_t> keys{1};
    EXPECT_EQ(run({}, bad, good, {keys, keys}).status().message(),
              "there must be a key for each query and each item");
}

TEST_F(MergedSearch, SearchesAllRowsWhereMemoryIsShort) {
    const TypedRows items(DoubleRows(500, {1, 2}), ElementType::float32, 2);
    const auto found = search_distinct_rows(
        {.k = 3}, items.vectors(), items.vectors(), {},
        [&](const KnnParameters& parameters, const Vectors& queries, const Vectors& rows,
            const RowKeys& keys) -> Result<Neighbors> {
            if (rows.rows < 500) return Status::out_of_memory();
            return knn(parameters, queries, rows, keys, execution);
        },
        execution);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->items.size(), 1500u);
}

TEST_F(MergedSearch, EmptyAndSparseTablesAreLeftToTheSearch) {
    const TypedRows none({}, ElementType::float32, 0), some({{1, 2}}, ElementType::float32, 2);
    EXPECT_EQ(run({}, none, some)->begins.size(), 1u);
    EXPECT_EQ(run({}, some, none)->begins.size(), 2u);
    const TypedRows sparse({{1, 2}, {1, 2}}, ElementType::float32, 2, true);
    EXPECT_EQ(run({}, sparse, sparse)->items.size(), 4u);
    EXPECT_EQ(asked.items, 2u);
}

TEST_F(MergedSearch, PaysWhereManyQueriesMeetManyCopies) {
    const auto pays = [&](std::size_t queries, std::size_t items, std::size_t copies) {
        std::vector<std::int32_t> elements(items);
        for (std::size_t row = 0; row < items; ++row)
            elements[row] = static_cast<std::int32_t>(row % (items / copies));
        const Vectors of{ElementType::int32, queries, 1, elements.data(), {}, {}};
        const Vectors among{ElementType::int32, items, 1, elements.data(), {}, {}};
        return distinct_rows_pay(of, among, execution);
    };
    EXPECT_TRUE(pays(60000, 60000, 60000));
    EXPECT_TRUE(pays(5000, 20000, 1000));
    EXPECT_FALSE(pays(60000, 60000, 1));
    EXPECT_FALSE(pays(10, 60000, 60000));
    EXPECT_FALSE(pays(0, 10, 10));
    EXPECT_FALSE(distinct_rows_pay({}, {}, execution));
}

TEST_F(MergedSearch, CanBeStopped) {
    RandomRows random;
    const TypedRows rows(random.rows(Shape::copies, 3000, 20), ElementType::float32, 20);
    execution.request_stop();
    EXPECT_EQ(run({}, rows, rows).status().code(), ErrorCode::cancelled);
    EXPECT_EQ(
        search_distinct_if_it_pays({}, rows.vectors(), rows.vectors(), {}, search(), execution)
            .status()
            .code(),
        ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
