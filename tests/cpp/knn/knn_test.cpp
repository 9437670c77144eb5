#include "cpp/knn/knn.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>

#include "tests/support/neighbor_rows.hpp"
#include "tests/support/on_each_simd.hpp"
#include "tests/support/plain_knn.hpp"
#include "tests/support/stops_soon.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::DoubleRows;
using testing::kAllShapes;
using testing::kFewer;
using testing::kSanitized;
using testing::name_of_simd;
using testing::NeighborRow;
using testing::OnEachSimd;
using testing::plain_neighbors;
using testing::PlainNeighbors;
using testing::RandomRows;
using testing::rows_of;
using testing::Shape;
using testing::TypedRows;

constexpr Metric kAllMetrics[] = {Metric::euclidean, Metric::cosine, Metric::inner_product,
                                  Metric::manhattan};

class KnnOnEach : public OnEachSimd {
protected:
    Neighbors run(KnnParameters parameters, const TypedRows& queries, const TypedRows& items,
                   const RowKeys& keys = {}, unsigned threads = 3) {
        parameters.simd = GetParam();
        Execution execution(threads);
        auto answer = knn(parameters, queries.vectors(), items.vectors(), keys, execution);
        EXPECT_TRUE(answer.ok()) << answer.status().message();
        return std::move(*answer);
    }

    /// Compares every `step`-th query.
    void expect_plain_answer(const KnnParameters& parameters, const TypedRows& queries,
                             const TypedRows& items, const RowKeys& keys = {},
                             std::size_t step = 1) {
        const auto found = rows_of(run(parameters, queries, items, keys));
        ASSERT_EQ(found.size(), queries.rows().size());
        for (std::size_t q = 0; q < found.size(); q += step) {
            std::vector<bool> excluded(items.rows().size());
            for (std::size_t i = 0; i < excluded.size(); ++i) excluded[i] = !keys.differ(q, i);
            const auto wanted =
                plain_neighbors(parameters, queries.rows()[q], items.rows(), excluded);
            ASSERT_EQ(found[q], rows_of(wanted)) << "query " << q;
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Simd, KnnOnEach,
                         ::testing::Values(Simd::portable, Simd::avx2, Simd::avx512, Simd::bfloat16, Simd::amx),
                         name_of_simd);

std::string name_of(Shape shape, Metric metric, std::size_t d, std::size_t k) {
    return "shape " + std::to_string(static_cast<int>(shape)) + ", metric " +
           std::to_string(static_cast<int>(metric)) + ", d " + std::to_string(d) + ", k " +
           std::to_string(k);
}

TEST_P(KnnOnEach, EqualsAPlainSearchOnAllShapes) {
    RandomRows random;
    const auto n = testing::rounds<std::size_t>(200, kSanitized ? 200 : 500);
    for (const Shape shape : kAllShapes)
        for (const std::size_t d : {1, 3, 41, 130})
            for (const ElementType type : {ElementType::float32, ElementType::float64}) {
                const bool extreme =
                    shape == Shape::tiny || shape == Shape::huge || shape == Shape::mixed;
                if (extreme && type == ElementType::float32) continue;
                const TypedRows items(random.rows(shape, n, d), type, d);
                const TypedRows queries(random.rows(shape, 21, d), type, d);
                for (const Metric metric : kAllMetrics) {
                    std::vector<std::vector<NeighborRow>> wanted;
                    for (const auto& query : queries.rows())
                        wanted.push_back(rows_of(
                            plain_neighbors({.k = n, .metric = metric}, query, items.rows())));
                    for (const std::size_t k : {n, std::size_t{20}, std::size_t{1}}) {
                        SCOPED_TRACE(name_of(shape, metric, d, k));
                        for (auto& rows : wanted) rows.resize(std::min(rows.size(), k));
                        ASSERT_EQ(rows_of(run({.k = k, .metric = metric}, queries, items)), wanted);
                    }
                }
            }
}

/// As many queries as GPUTEXT_TEST_QUERIES says, of all shapes, types, metrics and small sizes.
TEST_P(KnnOnEach, EqualsAPlainSearchOnManyQueries) {
    const char* wanted = std::getenv("GPUTEXT_TEST_QUERIES");
    const std::uint64_t most = wanted == nullptr ? testing::rounds(1000, 3000) : std::strtoull(wanted, nullptr, 10);
    RandomRows random;
    constexpr ElementType types[] = {ElementType::float16, ElementType::float32,
                                     ElementType::float64, ElementType::int32};
    constexpr std::size_t sizes[] = {1, 2, 3, 8, 16, 17, 41, 65};
    for (std::uint64_t compared = 0; compared < most;) {
        const std::size_t d = sizes[random.below(std::size(sizes))];
        const std::size_t n = 1 + random.below(300);
        const std::size_t k = 1 + random.below(random.below(2) == 0 ? 10 : n + 5);
        const Shape shape = kAllShapes[random.below(std::size(kAllShapes))];
        const bool extreme = shape == Shape::tiny || shape == Shape::huge || shape == Shape::mixed;
        const ElementType type = extreme ? ElementType::float64 : types[random.below(4)];
        const Metric metric = kAllMetrics[random.below(4)];
        SCOPED_TRACE(name_of(shape, metric, d, k) + ", n " + std::to_string(n));
        const TypedRows items(random.rows(shape, n, d), type, d);
        const TypedRows queries(random.rows(shape, 1 + random.below(100), d), type, d);
        ASSERT_NO_FATAL_FAILURE(expect_plain_answer({.k = k, .metric = metric}, queries, items));
        compared += queries.rows().size();
    }
}

TEST_P(KnnOnEach, EqualsAPlainSearchOnAllTypes) {
    RandomRows random;
    for (const std::size_t d : {2, 17, 64}) {
        for (const ElementType type :
             {ElementType::float16, ElementType::float32, ElementType::float64, ElementType::int32})
            for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::near_identical}) {
                const TypedRows items(random.rows(shape, 400, d), type, d);
                const TypedRows queries(random.rows(shape, 9, d), ElementType::float32, d);
                for (const Metric metric : kAllMetrics)
                    expect_plain_answer({.k = 7, .metric = metric}, queries, items);
            }
        const TypedRows items(random.rows(Shape::sparse, 400, d), ElementType::float32, d, true);
        const TypedRows queries(random.rows(Shape::sparse, 9, d), ElementType::float32, d, true);
        for (const Metric metric : kAllMetrics)
            expect_plain_answer({.k = 7, .metric = metric}, queries, items);
    }
}

TEST_P(KnnOnEach, EqualsAPlainSearchInManyDimensions) {
    RandomRows random;
    for (const std::size_t d : {768, 2000})
        for (const Shape shape : {Shape::gaussian, Shape::near_identical}) {
            const TypedRows items(random.rows(shape, 200, d), ElementType::float32, d);
            const TypedRows queries(random.rows(shape, 10, d), ElementType::float32, d);
            for (const Metric metric : kAllMetrics)
                expect_plain_answer({.k = 5, .metric = metric}, queries, items);
        }
}

TEST_P(KnnOnEach, FindsRowsBelowTheNormalDoublesBesideOthers) {
    RandomRows random;
    const std::size_t d = 10;
    DoubleRows rows = random.rows(Shape::gaussian, 50, d);
    for (std::size_t r = 0; r < rows.size(); r += 2)
        for (double& x : rows[r])
            x = std::round(1000 * x) * std::numeric_limits<double>::denorm_min();
    const TypedRows items(rows, ElementType::float64, d);
    for (const Metric metric : kAllMetrics) {
        SCOPED_TRACE(static_cast<int>(metric));
        KnnParameters parameters;
        parameters.metric = metric;
        parameters.k = 40;
        expect_plain_answer(parameters, items, items);
    }
}

TEST_P(KnnOnEach, FewQueriesAndFewItemsAreSearchedAlike) {
    RandomRows random;
    for (const std::size_t count : {1, 2, 3, 4, 50})
        for (const std::size_t n : {1, 2, 47, 48, 49, 3000}) {
            const TypedRows items(random.rows(Shape::gaussian, n, 19), ElementType::float32, 19);
            const TypedRows queries(random.rows(Shape::gaussian, count, 19), ElementType::float32,
                                    19);
            for (const Metric metric : kAllMetrics) {
                expect_plain_answer({.k = 1, .metric = metric}, queries, items);
                expect_plain_answer({.k = 60, .metric = metric}, queries, items);
            }
        }
}

/// Items are not looked through for copies where a few queries come, unless a sample shows them: of
/// none, many and few. Half of the items are as far as each other from the first query.
TEST_P(KnnOnEach, CopiesAndTiesForFewQueries) {
    RandomRows random;
    const std::size_t n = kFewer ? 4000 : 20000, d = 32;
    for (const std::size_t copies : {std::size_t{0}, n / 2, n / 500}) {
        DoubleRows rows = random.rows(Shape::gaussian, n, d);
        for (std::size_t i = 0; i < n; i += 2) {
            rows[i].assign(d, 0);
            for (std::size_t one = 0; one < 16; ++one) rows[i][(i >> one & 1) + 2 * one] = 1;
        }
        for (std::size_t i = 0; i < copies; ++i) rows[random.below(n)] = rows[1];
        const TypedRows items(rows, ElementType::float32, d);
        DoubleRows asked = random.rows(Shape::gaussian, 3, d);
        asked[0].assign(d, 0);
        asked[1] = rows[1];
        const TypedRows queries(asked, ElementType::float32, d);
        std::vector<std::uint32_t> item_keys(n), query_keys{2, 1, 7};
        std::iota(item_keys.begin(), item_keys.end(), 0u);
        for (const Metric metric : {Metric::euclidean, Metric::inner_product})
            for (const std::size_t k : {1, 40, 3000})
                for (const bool ties : {false, true}) {
                    const KnnParameters parameters{.k = k, .metric = metric, .include_ties = ties};
                    expect_plain_answer(parameters, queries, items);
                    expect_plain_answer(parameters, queries, items, {query_keys, item_keys});
                }
    }
}

TEST_P(KnnOnEach, ARadiusFindsAllWithinIt) {
    RandomRows random;
    for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::copies, Shape::sparse,
                              Shape::near_identical, Shape::clusters})
        for (const Metric metric : kAllMetrics) {
            const TypedRows items(random.rows(shape, 700, 12), ElementType::float32, 12);
            const TypedRows queries(random.rows(shape, 15, 12), ElementType::float32, 12);
            const auto some =
                plain_neighbors({.k = 40, .metric = metric}, queries.rows()[0], items.rows());
            // Just as far as an item, a bit less, everything, nothing.
            const double exactly = some.empty() ? 0.5 : some.back().second;
            for (const double radius : {exactly, std::nextafter(exactly, -1e300), 1e300, 0.0}) {
                expect_plain_answer(
                    {.k = KnnParameters::all_items, .metric = metric, .radius = radius}, queries,
                    items);
                expect_plain_answer({.k = 5, .metric = metric, .radius = radius}, queries, items);
            }
        }
}

/// So many queries and items that limits are guessed by a sample.
TEST_P(KnnOnEach, EachQueryMayHaveARadiusOfItsOwn) {
    RandomRows random;
    const auto distance_of = [](const NeighborRow& row) {
        return std::bit_cast<double>(std::uint64_t{row.second});
    };
    for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::copies})
        for (const Metric metric : kAllMetrics) {
            const std::size_t d = 20, k = 15, n = 40;
            const TypedRows items(random.rows(shape, 400, d), ElementType::float32, d);
            const TypedRows queries(random.rows(shape, n, d), ElementType::float32, d);
            const KnnParameters parameters{.k = k, .metric = metric, .simd = GetParam()};
            const auto all = rows_of(run(parameters, queries, items));
            std::vector<double> radii;
            std::vector<std::vector<NeighborRow>> wanted;
            for (const auto& neighbors : all) {
                // At a neighbor, which counts; beyond all of them; and before them
                const std::size_t kind = random.below(3);
                radii.push_back(kind == 0 || neighbors.empty()
                                    ? std::numeric_limits<double>::infinity()
                                : kind == 1 ? distance_of(neighbors[random.below(neighbors.size())])
                                            : -1e300);
                wanted.push_back(neighbors);
                std::erase_if(wanted.back(),
                              [&](const auto& row) { return distance_of(row) > radii.back(); });
            }
            Execution execution(2);
            auto found = knn_nearer(parameters, radii, queries.vectors(), items.vectors(),
                                    execution);
            ASSERT_TRUE(found.ok()) << found.status().message();
            EXPECT_EQ(rows_of(*found), wanted);
        }
}

TEST_P(KnnOnEach, GuessesOfLimitsLoseNothing) {
    RandomRows random;
    const std::size_t n = 3000, q = 260, step = kFewer ? 100 : 13;
    unsigned cases = 0;
    for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::copies, Shape::near_identical,
                              Shape::scales, Shape::clusters, Shape::outliers})
        for (const std::size_t d : {3, 41, 100}) {
            const TypedRows items(random.rows(shape, n, d), ElementType::float32, d);
            const TypedRows queries(random.rows(shape, q, d), ElementType::float32, d);
            for (const Metric metric : kAllMetrics) {
                // Another metric of each shape and number of dimensions.
                if (kFewer && cases++ % 5 != 0) continue;
                SCOPED_TRACE(name_of(shape, metric, d, 30));
                expect_plain_answer({.k = 30, .metric = metric, .include_ties = d == 3}, queries,
                                    items, {}, step);
            }
        }
}

/// The sample does not know of keys: here they exclude all that is near, and each guess is wrong.
TEST_P(KnnOnEach, WrongGuessesAreFoundOut) {
    RandomRows random;
    const std::size_t n = 3000, q = 300, d = 20, step = kFewer ? 60 : 9;
    DoubleRows rows = random.rows(Shape::gaussian, n, d);
    std::vector<std::uint32_t> keys(n);
    for (std::size_t i = 0; i < n; ++i) {
        keys[i] = i % 2;
        for (double& x : rows[i]) x += i % 2 == 0 ? 0 : 100;
    }
    const TypedRows items(rows, ElementType::float32, d);
    rows.resize(q);
    const TypedRows queries(rows, ElementType::float32, d);
    const RowKeys of_rows{std::span(keys).first(q), keys};
    for (const Metric metric : {Metric::euclidean, Metric::manhattan})
        for (const double radius : {std::numeric_limits<double>::infinity(), 1e4}) {
            if (kFewer && (radius == 1e4) != (metric == Metric::manhattan)) continue;
            expect_plain_answer({.k = 10, .metric = metric, .radius = radius}, queries, items,
                                of_rows, step);
        }
}

TEST_P(KnnOnEach, KeysKeepARowFromItself) {
    RandomRows random;
    const std::size_t step = kFewer ? 7 : 1;
    for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::copies})
        for (const std::size_t n : {1, 3, 500}) {
            const TypedRows rows(random.rows(shape, n, 6), ElementType::float32, 6);
            std::vector<std::uint32_t> unique(n), groups(n);
            std::iota(unique.begin(), unique.end(), 7u);
            for (auto& group : groups) group = static_cast<std::uint32_t>(random.below(4));
            for (const Metric metric : kAllMetrics)
                for (const std::size_t k : {1, 10}) {
                    for (const auto& keys : {unique, groups})
                        expect_plain_answer({.k = k, .metric = metric}, rows, rows, {keys, keys},
                                            step);
                    expect_plain_answer({.k = k, .metric = metric, .include_ties = true}, rows,
                                        rows, {unique, unique}, step);
                }
        }
}

TEST_P(KnnOnEach, TiesOfTheLastAreIncludedOnDemand) {
    RandomRows random;
    for (const Shape shape : {Shape::grid, Shape::copies, Shape::gaussian, Shape::sparse}) {
        const TypedRows items(random.rows(shape, 600, 4), ElementType::int32, 4);
        const TypedRows queries(random.rows(shape, 12, 4), ElementType::int32, 4);
        for (const Metric metric : kAllMetrics)
            for (const std::size_t k : {1, 9, 100})
                expect_plain_answer({.k = k, .metric = metric, .include_ties = true}, queries,
                                    items);
    }
}

TEST_P(KnnOnEach, NeitherMemoryNorThreadsChangeTheAnswer) {
    RandomRows random;
    const std::size_t n = kSanitized ? 5000 : 30000;
    for (const Shape shape : {Shape::gaussian, Shape::outliers, Shape::scales}) {
        const TypedRows items(random.rows(shape, n, 10), ElementType::float32, 10);
        const TypedRows queries(random.rows(shape, 130, 10), ElementType::float32, 10);
        for (const Metric metric : kAllMetrics) {
            KnnParameters parameters{.k = 13, .metric = metric};
            const auto answer = run(parameters, queries, items);
            parameters.memory_limit = 100000;
            for (const unsigned threads : {1u, 5u}) {
                const auto again = run(parameters, queries, items, {}, threads);
                ASSERT_EQ(rows_of(again), rows_of(answer));
            }
            for (const std::size_t q : {0, 77}) {
                const auto wanted = plain_neighbors(parameters, queries.rows()[q], items.rows());
                ASSERT_EQ(rows_of(answer)[q], rows_of(wanted));
            }
        }
    }
}

TEST_P(KnnOnEach, EscalatesWhereFloatsCannotTellItemsApart) {
    RandomRows random;
    constexpr std::size_t d = 8;
    const std::size_t n = kSanitized ? 4000 : 20000;
    // All items around two far points: a millionth of their norm tells them apart, which a float
    // does not see, and a double does.
    DoubleRows rows = random.rows(Shape::gaussian, n, d);
    for (std::size_t i = 0; i < n; ++i)
        for (double& x : rows[i]) x = 1e-2 * x + (i % 2 == 0 ? 1e3 : -1e3);
    const TypedRows items(rows, ElementType::float64, d);
    rows.resize(50);
    const TypedRows queries(rows, ElementType::float64, d);
    const auto answer = run({.k = 10, .metric = Metric::euclidean}, queries, items);
    EXPECT_GE(answer.escalated, 25u);  // the center lies in one of the two
    EXPECT_LT(answer.rescored, 50 * n / 10);
    for (std::size_t q = 0; q < rows.size(); q += 7) {
        const auto wanted = plain_neighbors({.k = 10, .metric = Metric::euclidean},
                                             queries.rows()[q], items.rows());
        ASSERT_EQ(rows_of(answer)[q], rows_of(wanted));
    }
}

TEST_P(KnnOnEach, TheFilterLeavesOutNearlyAll) {
    RandomRows random;
    const std::size_t n = kSanitized ? 3000 : 20000;
    const TypedRows items(random.rows(Shape::gaussian, n, 41), ElementType::float32, 41);
    const TypedRows queries(random.rows(Shape::gaussian, 40, 41), ElementType::float32, 41);
    for (const Metric metric : kAllMetrics) {
        const auto answer = run({.k = 100, .metric = metric}, queries, items, {}, 1);
        EXPECT_EQ(answer.escalated, 0u);
        EXPECT_LT(answer.rescored, 40u * 110);
    }
}

/// The filtered search, plain searches, and copies, which are candidates once.
TEST(Knn, KeepsToItsAnswerLimit) {
    RandomRows random;
    constexpr std::size_t n = 600, d = 5;
    const struct {
        Shape shape;
        std::size_t queries;
        bool sparse;
    } searches[] = {{Shape::gaussian, n, false},
                    {Shape::gaussian, n, true},
                    {Shape::gaussian, 3, false},
                    {Shape::copies, n, false}};
    for (const auto& [shape, count, sparse] : searches) {
        const TypedRows items(random.rows(shape, n, d), ElementType::float32, d, sparse);
        const TypedRows queries(random.rows(shape, count, d), ElementType::float32, d, sparse);
        for (const std::size_t k : {KnnParameters::all_items, n / 2})
            for (const double radius : {1e300, std::numeric_limits<double>::infinity()}) {
                KnnParameters parameters{.k = k, .metric = Metric::euclidean, .radius = radius};
                const std::size_t neighbors = count * std::min(k, n);
                SCOPED_TRACE(std::to_string(count) + " queries, " + std::to_string(neighbors));
                Execution execution(2);
                const auto search = [&](std::size_t limit) {
                    parameters.answer_limit = limit;
                    return knn(parameters, queries.vectors(), items.vectors(), {}, execution);
                };
                const auto wanted = search(SIZE_MAX);
                ASSERT_TRUE(wanted.ok());
                ASSERT_EQ(wanted->items.size(), neighbors);
                const auto within = search(2 * kBytesOfNeighbor * neighbors);
                ASSERT_TRUE(within.ok()) << within.status().message();
                EXPECT_EQ(rows_of(*within), rows_of(*wanted));
                for (const std::size_t limit :
                     {kBytesOfNeighbor * neighbors - 1, std::size_t{1000}, std::size_t{0}}) {
                    const Status status = search(limit).status();
                    EXPECT_EQ(status.code(), ErrorCode::memory_limit) << status.message();
                    EXPECT_NE(status.message().find(" would take at least "), std::string::npos);
                }
            }
    }
}

/// Lists are cut before they are kept: a search that looks at many items for few neighbors takes
/// no more than these.
TEST(Knn, TakesMemoryForItsNeighborsAlone) {
    RandomRows random;
    const TypedRows items(random.rows(Shape::gaussian, 5000, 4), ElementType::float32, 4, true);
    Execution execution(2);
    KnnParameters parameters{.k = 10, .metric = Metric::euclidean};
    parameters.answer_limit = 5000 * 10 * 2 * kBytesOfNeighbor;
    const auto answer = knn(parameters, items.vectors(), items.vectors(), {}, execution);
    EXPECT_TRUE(answer.ok()) << answer.status().message();
}

TEST(Knn, EmptyTablesHaveNoNeighbors) {
    const TypedRows none({}, ElementType::float32, 0), some({{1, 2}}, ElementType::float32, 2);
    Execution execution(2);
    const auto rows = [&](const TypedRows& queries, const TypedRows& items) {
        return rows_of(*knn({}, queries.vectors(), items.vectors(), {}, execution));
    };
    EXPECT_EQ(rows(none, none).size(), 0u);
    EXPECT_EQ(rows(none, some).size(), 0u);
    EXPECT_EQ(rows(some, none), (std::vector<std::vector<NeighborRow>>{{}}));
}

TEST(Knn, RowsWithoutDimensionsAreAllAtZero) {
    const TypedRows rows({{}, {}, {}}, ElementType::float64, 0);
    Execution execution(2);
    const auto answer =
        knn({.k = 2, .metric = Metric::euclidean}, rows.vectors(), rows.vectors(), {}, execution);
    EXPECT_EQ(answer->items, (std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1}));
    const auto cosine = knn({.k = 2}, rows.vectors(), rows.vectors(), {}, execution);
    EXPECT_TRUE(cosine->items.empty());
}

TEST(Knn, RefusesWhatCannotBeCompared) {
    Execution execution(2);
    const TypedRows two({{1, 2}, {3, 4}}, ElementType::float32, 2);
    const TypedRows three({{1, 2, 3}}, ElementType::float32, 3);
    const TypedRows bad({{1, 2}, {3, std::nan("")}}, ElementType::float32, 2);
    const TypedRows sparse({{1, 0}}, ElementType::float32, 2, true);
    const auto message = [&](const KnnParameters& parameters, const TypedRows& queries,
                             const TypedRows& items, const RowKeys& keys = {}) {
        const auto answer = knn(parameters, queries.vectors(), items.vectors(), keys, execution);
        EXPECT_EQ(answer.status().code(), ErrorCode::invalid_argument);
        return answer.status().message();
    };
    EXPECT_EQ(message({.k = 0}, two, two), "k must be at least 1");
    EXPECT_EQ(message({.radius = std::nan("")}, two, two), "the radius must be a number");
    EXPECT_EQ(message({}, three, two), "queries have 3 dimensions, and items 2");
    EXPECT_EQ(message({}, sparse, two), "sparse vectors cannot be compared with dense ones");
    EXPECT_EQ(message({}, two, bad), "item 1 has an element that is not a finite number");
    EXPECT_EQ(message({}, bad, two), "query 1 has an element that is not a finite number");
    const std::vector<std::uint32_t> keys{1};
    EXPECT_EQ(message({}, two, two, {keys, keys}),
              "there must be a key for each query and each item");
}

TEST(Knn, CanBeStopped) {
    RandomRows random;
    const TypedRows rows(random.rows(Shape::gaussian, 3000, 20), ElementType::float32, 20);
    Execution execution(2);
    execution.request_stop();
    const auto answer = knn({}, rows.vectors(), rows.vectors(), {}, execution);
    EXPECT_EQ(answer.status().code(), ErrorCode::cancelled);
}

TEST(Knn, StopsSoonAtAnyTime) {
    constexpr std::size_t d = 48, n = kSanitized ? 30000 : 400000, q = 3000;
    std::mt19937 generator(1);
    std::vector<float> elements(n * d);
    for (float& element : elements) element = static_cast<float>(generator() >> 8);
    const Vectors items{ElementType::float32, n, d, elements.data(), {}, {}};
    const Vectors queries{ElementType::float32, q, d, elements.data(), {}, {}};
    const KnnParameters cases[] = {
        {.k = 10, .metric = Metric::euclidean},
        {.k = n, .metric = Metric::euclidean},
        {.k = KnnParameters::all_items, .metric = Metric::manhattan, .radius = 2.2e8}};
    for (const KnnParameters& parameters : cases)
        for (const int time : {5, 20, 60, 150, 400}) {
            SCOPED_TRACE("k " + std::to_string(parameters.k) + ", after " +
                         std::to_string(time) + " ms");
            testing::expect_stops_soon(
                [&](Execution& execution) {
                    return knn(parameters, queries, items, {}, execution).status();
                },
                testing::after(time));
        }
}

}  // namespace
}  // namespace gputext
