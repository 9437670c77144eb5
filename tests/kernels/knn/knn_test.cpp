#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "cpp/base/vectors.hpp"
#include "cpp/knn/cosine_similarity.hpp"
#include "cpp/knn/distinct_search.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/knn/outlier_factor.hpp"
#include "kernels/base/resident_copies.hpp"
#include "kernels/knn/cosine_similarity.hpp"
#include "kernels/knn/knn.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/neighbor_rows.hpp"
#include "tests/support/plain_knn.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::differing;
using testing::DoubleRows;
using testing::kAllShapes;
using testing::plain_neighbors;
using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

constexpr Metric kAllMetrics[] = {Metric::euclidean, Metric::cosine, Metric::inner_product,
                                  Metric::manhattan};
constexpr ElementType kAllTypes[] = {ElementType::float16, ElementType::float32,
                                     ElementType::float64, ElementType::int32};

/// Any two NaN are the same.
bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
        return std::isnan(x) ? std::isnan(y)
                             : std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
    });
}

/// The CPU's operator, which its own test holds against a plain search, gives what is expected.
class KnnOnDevice : public testing::RingTest {
protected:
    static Neighbors expected(const KnnParameters& parameters, const TypedRows& queries,
                               const TypedRows& items, const RowKeys& keys = {}) {
        Execution execution(8);
        auto answer = knn(parameters, queries.vectors(), items.vectors(), keys, execution);
        EXPECT_TRUE(answer.ok()) << answer.status().message();
        return std::move(*answer);
    }

    Result<Neighbors> run(const KnnParameters& parameters, const TypedRows& queries,
                           const TypedRows& items, const RowKeys& keys = {}) {
        Execution execution(4);
        counts = {};
        return gpu::knn(parameters, queries.vectors(), items.vectors(), keys, work, ring(),
                        execution, &counts);
    }

    /// Whether a case of many is left out: under a checker, which makes the device slow, every
    /// seventh is enough, which is another one in each round of the loops.
    bool left_out() { return small() && cases_++ % 7 != 0; }

    void expect_same(const KnnParameters& parameters, const TypedRows& queries,
                     const TypedRows& items, const RowKeys& keys = {}) {
        if (left_out()) return;
        const auto found = run(parameters, queries, items, keys);
        ASSERT_TRUE(found.ok()) << found.status().message();
        ASSERT_EQ(differing(*found, expected(parameters, queries, items, keys)), 0u);
        queries_compared += queries.rows().size();
    }

    gpu::KnnCounts counts;
    std::uint64_t queries_compared = 0;

private:
    unsigned cases_ = 0;
};

std::string name_of(Shape shape, ElementType type, Metric metric, std::size_t d, std::size_t k) {
    return "shape " + std::to_string(static_cast<int>(shape)) + ", type " +
           std::to_string(static_cast<int>(type)) + ", metric " +
           std::to_string(static_cast<int>(metric)) + ", d " + std::to_string(d) + ", k " +
           std::to_string(k);
}

bool is_extreme(Shape shape) {
    return shape == Shape::tiny || shape == Shape::huge || shape == Shape::mixed;
}

TEST_F(KnnOnDevice, EqualsTheCpusOnAllShapes) {
    RandomRows random;
    const auto n = static_cast<std::size_t>(testing::rounds(2000));
    for (const Shape shape : kAllShapes)
        for (const std::size_t d : {1, 3, 16, 41, 100})
            for (const ElementType type : kAllTypes) {
                if (is_extreme(shape) && type != ElementType::float64) continue;
                const TypedRows items(random.rows(shape, n, d), type, d);
                const TypedRows queries(random.rows(shape, 300, d), type, d);
                for (const Metric metric : kAllMetrics)
                    for (const std::size_t k : {1, 50}) {
                        SCOPED_TRACE(name_of(shape, type, metric, d, k));
                        ASSERT_NO_FATAL_FAILURE(
                            expect_same({.k = k, .metric = metric}, queries, items));
                    }
            }
}

TEST_F(KnnOnDevice, EqualsAPlainSearch) {
    RandomRows random;
    for (const Shape shape : kAllShapes) {
        const TypedRows items(random.rows(shape, 500, 20), ElementType::float64, 20);
        const TypedRows queries(random.rows(shape, 20, 20), ElementType::float64, 20);
        for (const Metric metric : kAllMetrics) {
            if (left_out()) continue;
            const KnnParameters parameters{.k = 30, .metric = metric};
            const auto found = run(parameters, queries, items);
            ASSERT_TRUE(found.ok());
            for (std::size_t q = 0; q < 20; ++q) {
                const auto wanted = plain_neighbors(parameters, queries.rows()[q], items.rows());
                ASSERT_EQ(found->begins[q + 1] - found->begins[q], wanted.size());
                for (std::size_t i = 0; i < wanted.size(); ++i) {
                    ASSERT_EQ(found->items[found->begins[q] + i], wanted[i].first);
                    ASSERT_EQ(found->distances[found->begins[q] + i], wanted[i].second);
                }
            }
        }
    }
}

TEST_F(KnnOnDevice, RowsBelowTheNormalDoublesAreFoundBesideOthers) {
    RandomRows random;
    const std::size_t d = 10;
    DoubleRows rows = random.rows(Shape::gaussian, 300, d);
    for (std::size_t r = 0; r < rows.size(); r += 2)
        for (double& x : rows[r])
            x = std::round(1000 * x) * std::numeric_limits<double>::denorm_min();
    const TypedRows items(rows, ElementType::float64, d);
    for (const Metric metric : kAllMetrics)
        ASSERT_NO_FATAL_FAILURE(expect_same({.k = 200, .metric = metric}, items, items));
}

TEST_F(KnnOnDevice, ManyNeighborsEqualTheCpus) {
    RandomRows random;
    const auto n = static_cast<std::size_t>(testing::rounds(20000));
    for (const Shape shape : {Shape::gaussian, Shape::copies, Shape::sparse}) {
        const TypedRows items(random.rows(shape, n, 10), ElementType::float32, 10);
        const TypedRows queries(random.rows(shape, 40, 10), ElementType::float32, 10);
        for (const Metric metric : kAllMetrics)
            for (const std::size_t k : {std::size_t{500}, std::size_t{1024}, std::size_t{1025},
                                        std::size_t{6000}, n, n + 5}) {
                SCOPED_TRACE(name_of(shape, ElementType::float32, metric, 10, k));
                ASSERT_NO_FATAL_FAILURE(expect_same({.k = k, .metric = metric}, queries, items));
            }
    }
}

/// What is found for few dimensions and not too many items is marked as bits.
TEST_F(KnnOnDevice, MarkedItemsEqualTheCpus) {
    constexpr std::size_t kDimensions[] = {41, 1, 64, 7, 16, 57, 2};
    constexpr std::size_t kNeighbors[] = {100, 20, 1, 127};
    RandomRows random;
    std::size_t cases = 0;
    for (const Shape shape : kAllShapes)
        for (const ElementType type : kAllTypes)
            for (const Metric metric : kAllMetrics) {
                if (is_extreme(shape) && type != ElementType::float64) continue;
                const std::size_t d = kDimensions[cases % std::size(kDimensions)];
                const std::size_t k = kNeighbors[cases / 4 % std::size(kNeighbors)];
                const std::size_t n = 8192 + random.below(++cases % 9 == 0 ? 57000 : 3000);
                SCOPED_TRACE(name_of(shape, type, metric, d, k));
                const TypedRows items(random.rows(shape, n, d), type, d);
                const TypedRows queries(random.rows(shape, 40, d), type, d);
                std::vector<std::uint32_t> item_keys(n), query_keys(40);
                for (auto& key : item_keys) key = static_cast<std::uint32_t>(random.below(50));
                for (auto& key : query_keys) key = static_cast<std::uint32_t>(random.below(50));
                RowKeys keys;
                if (cases % 3 == 0) keys = {query_keys, item_keys};
                ASSERT_NO_FATAL_FAILURE(
                    expect_same({.k = k, .metric = metric}, queries, items, keys));
            }
}

/// So many queries that a warp keeps the nearest of each, but for those with many marked items.
TEST_F(KnnOnDevice, MarkedItemsOfManyQueriesEqualTheCpus) {
    constexpr std::size_t kQueries = 1101;
    constexpr std::size_t kDimensions[] = {41, 10, 64};
    RandomRows random;
    std::size_t cases = 0;
    for (const Shape shape : {Shape::gaussian, Shape::copies, Shape::grid})
        for (const ElementType type : kAllTypes)
            for (const Metric metric : kAllMetrics) {
                const std::size_t d = kDimensions[cases % std::size(kDimensions)];
                const std::size_t k = cases / 4 % 2 == 0 ? 100 : 20;
                const std::size_t n = 8192 + 100 * (cases % 5);
                SCOPED_TRACE(name_of(shape, type, metric, d, k));
                const TypedRows items(random.rows(shape, n, d), type, d);
                const TypedRows queries(random.rows(shape, kQueries, d), type, d);
                std::vector<std::uint32_t> item_keys(n), query_keys(kQueries);
                for (auto& key : item_keys) key = static_cast<std::uint32_t>(random.below(50));
                for (auto& key : query_keys) key = static_cast<std::uint32_t>(random.below(50));
                RowKeys keys;
                if (++cases % 3 == 0) keys = {query_keys, item_keys};
                ASSERT_NO_FATAL_FAILURE(
                    expect_same({.k = k, .metric = metric, .include_ties = cases % 5 == 0}, queries,
                                items, keys));
            }
}

/// Blocks of the filter go on from some queries to the next ones.
TEST_F(KnnOnDevice, SharesOfManyQueriesEqualTheCpus) {
    RandomRows random;
    for (const std::size_t d : {41, 64, 30, 10})
        for (const std::size_t n : {8192, 8193, 16500, 20000, 65400})
            for (const std::size_t count : {600, 256}) {
                const TypedRows items(random.rows(Shape::gaussian, n, d), ElementType::float32, d);
                const TypedRows queries(random.rows(Shape::gaussian, count, d),
                                        ElementType::float32, d);
                SCOPED_TRACE("d " + std::to_string(d) + ", n " + std::to_string(n));
                ASSERT_NO_FATAL_FAILURE(expect_same({.k = 100}, queries, items));
            }
}

TEST_F(KnnOnDevice, SizesOfAllKinds) {
    RandomRows random;
    for (const std::size_t count : {1, 2, 65, 257})
        for (const std::size_t n : {1, 2, 63, 64, 65, 1025, 5000})
            for (const std::size_t d : {1, 19, 2000}) {
                const TypedRows items(random.rows(Shape::gaussian, n, d), ElementType::float32, d);
                const TypedRows queries(random.rows(Shape::gaussian, count, d),
                                        ElementType::float32, d);
                for (const Metric metric : kAllMetrics)
                    ASSERT_NO_FATAL_FAILURE(
                        expect_same({.k = 60, .metric = metric}, queries, items));
            }
}

TEST_F(KnnOnDevice, ARadiusFindsAllWithinIt) {
    RandomRows random;
    for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::copies, Shape::sparse,
                              Shape::near_identical, Shape::clusters})
        for (const Metric metric : kAllMetrics) {
            const TypedRows items(random.rows(shape, 9000, 12), ElementType::float32, 12);
            const TypedRows queries(random.rows(shape, 70, 12), ElementType::float32, 12);
            const auto some = expected({.k = 40, .metric = metric}, queries, items);
            const double exactly = some.distances.empty() ? 0.5 : some.distances.back();
            for (const double radius : {exactly, std::nextafter(exactly, -1e300), 1e300, 0.0}) {
                SCOPED_TRACE(name_of(shape, ElementType::float32, metric, 12, 0));
                ASSERT_NO_FATAL_FAILURE(
                    expect_same({.k = KnnParameters::all_items, .metric = metric, .radius = radius},
                                queries, items));
                ASSERT_NO_FATAL_FAILURE(
                    expect_same({.k = 5, .metric = metric, .radius = radius}, queries, items));
            }
        }
}

TEST_F(KnnOnDevice, KeysKeepARowFromItself) {
    RandomRows random;
    for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::copies})
        for (const std::size_t n : {1, 3, 500, 4000}) {
            const TypedRows rows(random.rows(shape, n, 6), ElementType::float32, 6);
            std::vector<std::uint32_t> unique(n), groups(n);
            std::iota(unique.begin(), unique.end(), 7u);
            for (auto& group : groups) group = static_cast<std::uint32_t>(random.below(4));
            for (const Metric metric : kAllMetrics)
                for (const bool ties : {false, true})
                    for (const auto& keys : {unique, groups})
                        ASSERT_NO_FATAL_FAILURE(
                            expect_same({.k = 10, .metric = metric, .include_ties = ties}, rows,
                                        rows, {keys, keys}));
        }
}

TEST_F(KnnOnDevice, TiesOfTheLastAreIncludedOnDemand) {
    RandomRows random;
    for (const Shape shape : {Shape::grid, Shape::copies, Shape::gaussian, Shape::sparse}) {
        const TypedRows items(random.rows(shape, 6000, 4), ElementType::int32, 4);
        const TypedRows queries(random.rows(shape, 30, 4), ElementType::int32, 4);
        for (const Metric metric : kAllMetrics)
            for (const std::size_t k : {1, 9, 100})
                ASSERT_NO_FATAL_FAILURE(
                    expect_same({.k = k, .metric = metric, .include_ties = true}, queries, items));
    }
}

TEST_F(KnnOnDevice, LittleMemoryGivesTheSameAnswer) {
    RandomRows random;
    const auto n = static_cast<std::size_t>(testing::rounds(30000));
    for (const Shape shape : {Shape::gaussian, Shape::outliers, Shape::scales, Shape::copies}) {
        const TypedRows items(random.rows(shape, n, 33), ElementType::float32, 33);
        const TypedRows queries(random.rows(shape, 500, 33), ElementType::float32, 33);
        for (const Metric metric : kAllMetrics)
            for (const std::size_t k : {13, 2000}) {
                if (left_out()) continue;
                SCOPED_TRACE(name_of(shape, ElementType::float32, metric, 33, k));
                const KnnParameters parameters{.k = k, .metric = metric};
                const auto bytes = gpu::knn_bytes(parameters, queries.vectors(), items.vectors());
                const auto wanted = expected(parameters, queries, items);
                for (const std::size_t memory :
                     {bytes.least, bytes.least + bytes.least / 3, bytes.good / 2}) {
                    work.bytes = std::max(memory, bytes.least);
                    const auto found = run(parameters, queries, items);
                    ASSERT_TRUE(found.ok()) << found.status().message();
                    ASSERT_EQ(differing(*found, wanted), 0u);
                }
                work.bytes = bytes.least - 1;
                ASSERT_EQ(run(parameters, queries, items).status().code(),
                          ErrorCode::out_of_memory);
            }
    }
}

TEST_F(KnnOnDevice, SimilaritiesEqualTheCpus) {
    RandomRows random;
    for (const Shape shape : kAllShapes)
        for (const std::size_t d : {1, 15, 100, 1000})
            for (const ElementType type : kAllTypes) {
                if ((is_extreme(shape) && type != ElementType::float64) || left_out()) continue;
                const TypedRows items(random.rows(shape, 1100, d), type, d);
                const TypedRows query(random.rows(shape, 1, d), type, d);
                Execution execution(4);
                const auto wanted =
                    cosine_similarities(query.vectors(), items.vectors(), best_simd(), execution);
                const auto bytes = gpu::cosine_similarities_bytes(query.vectors(), items.vectors());
                for (const std::size_t memory : {bytes.good, bytes.least}) {
                    work.bytes = memory;
                    const auto found = gpu::cosine_similarities(query.vectors(), items.vectors(),
                                                                work, ring(), execution);
                    ASSERT_TRUE(found.ok()) << found.status().message();
                    ASSERT_TRUE(same_bits(*found, *wanted));
                }
            }
}

TEST_F(KnnOnDevice, OutlierFactorsEqualTheCpus) {
    RandomRows random;
    for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::copies, Shape::clusters}) {
        const TypedRows items(random.rows(shape, 9000, 7), ElementType::float32, 7);
        for (const TieRule ties : {TieRule::sklearn, TieRule::breunig})
            for (const Metric metric : {Metric::euclidean, Metric::cosine, Metric::manhattan}) {
                if (left_out()) continue;
                const OutlierParameters parameters{.k = 20, .metric = metric, .ties = ties};
                Execution execution(8);
                const auto wanted = local_outlier_factors(parameters, items.vectors(), execution);
                OutlierSearch search;
                ASSERT_TRUE(search.set(parameters, items.vectors(), execution).ok());
                const auto neighbors = gpu::knn(search.parameters(), search.rows(), search.rows(),
                                                 search.keys(), work, ring(), execution);
                ASSERT_TRUE(neighbors.ok()) << neighbors.status().message();
                const auto found = search.factors({&*neighbors, 1}, execution);
                ASSERT_TRUE(same_bits(*found, *wanted));
            }
    }
}

TEST_F(KnnOnDevice, LargeTablesEqualTheCpus) {
    RandomRows random;
    const auto n = static_cast<std::size_t>(testing::rounds(200000));
    for (const Shape shape : {Shape::gaussian, Shape::clusters, Shape::near_identical})
        for (const std::size_t d : {16, 100}) {
            const TypedRows items(random.rows(shape, n, d), ElementType::float32, d);
            const TypedRows queries(random.rows(shape, 300, d), ElementType::float32, d);
            for (const Metric metric : kAllMetrics)
                ASSERT_NO_FATAL_FAILURE(expect_same({.k = 100, .metric = metric}, queries, items));
        }
}

TEST_F(KnnOnDevice, RefusesWhatItDoesNotCompare) {
    const TypedRows two({{1, 2}, {3, 4}}, ElementType::float32, 2);
    const TypedRows three({{1, 2, 3}}, ElementType::float32, 3);
    const TypedRows bad({{1, 2}, {3, std::nan("")}}, ElementType::float32, 2);
    const TypedRows sparse({{1, 0}}, ElementType::float32, 2, true);
    EXPECT_EQ(run({.k = 0}, two, two).status().message(), "k must be at least 1");
    EXPECT_EQ(run({}, three, two).status().message(), "queries have 3 dimensions, and items 2");
    EXPECT_EQ(run({}, sparse, sparse).status().code(), ErrorCode::invalid_argument);
    EXPECT_EQ(run({}, two, bad).status().message(),
              "item 1 has an element that is not a finite number");
    const TypedRows none({}, ElementType::float32, 0);
    EXPECT_EQ(run({}, none, two)->begins.size(), 1u);
    EXPECT_EQ(run({}, two, none)->begins, (std::vector<std::uint64_t>{0, 0, 0}));
}

TEST_F(KnnOnDevice, EndsWhenAskedToStop) {
    RandomRows random;
    const TypedRows rows(random.rows(Shape::gaussian, 3000, 20), ElementType::float32, 20);
    auto ring = gpu::UploadRing::create(2);
    Execution execution(2);
    execution.request_stop();
    const auto answer = gpu::knn({}, rows.vectors(), rows.vectors(), {}, work, **ring, execution);
    EXPECT_EQ(answer.status().code(), ErrorCode::cancelled);
}

/// Items of resident memory, searched again and again.
class KnnAmongResidentItems : public KnnOnDevice {
protected:
    void TearDown() override {
        if (copies_ != nullptr) {
            EXPECT_EQ(cudaStreamSynchronize(ring().stream()), cudaSuccess);
        }
        kept_.clear();
        copies_.reset();
        KnnOnDevice::TearDown();
    }

    /// The whole matrix as a range.
    void make_resident(const TypedRows& rows) {
        const Vectors& vectors = rows.vectors();
        ranges_->add({++range_, reinterpret_cast<const std::uint8_t*>(vectors.elements),
                      vectors.rows * vectors.dimensions * element_size(vectors.type)});
        if (copies_ == nullptr) copies_ = std::make_unique<gpu::ResidentCopies>(ranges_, 0);
        ring().use(copies_.get());
    }
    void forget() {
        ranges_->remove(range_);
        kept_.drop_gone(*ranges_);
    }

    /// Searches twice: what the first search makes, the second one finds.
    void expect_same_twice(const KnnParameters& parameters, const Vectors& queries,
                           const Vectors& items) {
        Execution execution(4);
        const auto wanted = gputext::knn(parameters, queries, items, {}, execution);
        ASSERT_TRUE(wanted.ok());
        for (int i = 0; i < 2; ++i) {
            ASSERT_EQ(cudaStreamSynchronize(ring().stream()), cudaSuccess);
            ASSERT_TRUE(copies_->begin_job(work.bytes).ok());
            const std::uint64_t uploaded = ring().uploaded();
            const auto found =
                gpu::knn(parameters, queries, items, {}, work, ring(), execution, &counts, &kept_);
            ASSERT_TRUE(found.ok()) << found.status().message();
            ASSERT_EQ(differing(*found, *wanted), 0u) << i;
            if (i == 0) continue;
            const std::uint64_t of_queries =
                queries.rows * queries.dimensions * element_size(queries.type);
            EXPECT_LE(ring().uploaded() - uploaded, of_queries) << "the items are there";
        }
    }

    std::shared_ptr<ResidentRanges> ranges_ = std::make_shared<ResidentRanges>();
    std::unique_ptr<gpu::ResidentCopies> copies_;
    gpu::ItemCache kept_{std::uint64_t{1} << 30};
    std::uint64_t range_ = 0;
};

TEST_F(KnnAmongResidentItems, ForAnyNumberOfQueries) {
    RandomRows random;
    const auto n = static_cast<std::size_t>(testing::rounds(40000)) + 9000;
    for (const ElementType type : {ElementType::float32, ElementType::float16})
        for (const std::size_t d : {8, 41, 96, 768}) {
            const TypedRows items(random.rows(Shape::clusters, n, d), type, d);
            const TypedRows queries(random.rows(Shape::clusters, 300, d), type, d);
            make_resident(items);
            for (const Metric metric : kAllMetrics)
                for (const std::size_t count : {1, 2, 16, 17, 300}) {
                    if (left_out()) continue;
                    Vectors some = queries.vectors();
                    some.rows = count;
                    expect_same_twice({.k = 20, .metric = metric}, some, items.vectors());
                    if (metric != Metric::manhattan && d == 96) {
                        EXPECT_GT(kept_.bytes(), 0u);
                    }
                }
            forget();
            EXPECT_EQ(kept_.bytes(), 0u);
        }
}

TEST_F(KnnAmongResidentItems, InParts) {
    RandomRows random;
    const std::size_t n = 40000, d = 41;
    const TypedRows items(random.rows(Shape::gaussian, n, d), ElementType::float32, d);
    const TypedRows queries(random.rows(Shape::gaussian, 20, d), ElementType::float32, d);
    make_resident(items);
    for (const std::size_t begin : {0, 4, 20000, 20001}) {
        const RowRange part(items.vectors(), begin, begin + 15000);
        for (const Metric metric : {Metric::euclidean, Metric::cosine})
            expect_same_twice({.k = 10, .metric = metric}, queries.vectors(), part.vectors());
    }
}

/// Metrics, ranges and little memory do not mix.
TEST_F(KnnAmongResidentItems, WithLittleMemory) {
    RandomRows random;
    const std::size_t n = 20000, d = 64;
    const TypedRows items(random.rows(Shape::gaussian, n, d), ElementType::float32, d);
    const TypedRows queries(random.rows(Shape::gaussian, 40, d), ElementType::float32, d);
    make_resident(items);
    const std::size_t all = work.bytes;
    for (const std::size_t megabytes : {64, 12, 8, 64}) {
        work.bytes = megabytes << 20;
        for (const Metric metric : {Metric::euclidean, Metric::cosine, Metric::euclidean})
            expect_same_twice({.k = 10, .metric = metric}, queries.vectors(), items.vectors());
    }
    work.bytes = all;
}

TEST_F(KnnOnDevice, EqualRowsMayBeSearchedOnce) {
    RandomRows random;
    const auto n = static_cast<std::size_t>(testing::rounds(2000));
    std::vector<std::uint32_t> own(n), pairs(n);
    std::iota(own.begin(), own.end(), 0u);
    for (std::uint32_t i = 0; i < n; ++i) pairs[i] = i / 2;
    for (const Shape shape : {Shape::copies, Shape::grid, Shape::sparse})
        for (const Metric metric : kAllMetrics) {
            const TypedRows items(random.rows(shape, n, 4), ElementType::float32, 4);
            const auto compare = [&](const KnnParameters& parameters, const RowKeys& keys) {
                if (left_out()) return;
                Execution execution(4);
                const auto found = search_distinct_rows(
                    parameters, items.vectors(), items.vectors(), keys,
                    [&](const KnnParameters& wanted, const Vectors& of, const Vectors& among,
                        const RowKeys& given) {
                        return gpu::knn(wanted, of, among, given, work, ring(), execution);
                    },
                    execution);
                ASSERT_TRUE(found.ok()) << found.status().message();
                ASSERT_EQ(differing(*found, expected(parameters, items, items, keys)), 0u);
            };
            for (const bool ties : {false, true})
                for (const std::size_t k : {1, 20, 200})
                    for (const RowKeys& keys :
                         {RowKeys{}, RowKeys{own, own}, RowKeys{pairs, pairs}})
                        ASSERT_NO_FATAL_FAILURE(
                            compare({.k = k, .metric = metric, .include_ties = ties}, keys));
            for (const double radius : {0.0, 0.3})
                ASSERT_NO_FATAL_FAILURE(compare(
                    {.k = KnnParameters::all_items, .metric = metric, .radius = radius}, {}));
        }
}

/// As many queries as GPUTEXT_TEST_QUERIES says, of all shapes, types, metrics and sizes. The CPU
/// takes microseconds for a distance of extreme numbers: fewer of those at a time.
TEST_F(KnnOnDevice, ManyRandomQueriesEqualTheCpus) {
    const char* wanted = std::getenv("GPUTEXT_TEST_QUERIES");
    const std::uint64_t most =
        wanted == nullptr ? testing::rounds(5000) : std::strtoull(wanted, nullptr, 10);
    RandomRows random;
    constexpr std::size_t sizes[] = {1, 2, 3, 5, 8, 16, 17, 31, 41, 64, 65, 96, 200};
    constexpr std::size_t ks[] = {1, 2, 10, 20, 100, 128, 129, 700};
    while (queries_compared < most) {
        const std::size_t d = sizes[random.below(std::size(sizes))];
        const std::size_t n = 1 + random.below(random.below(2) == 0 ? 500 : 20000);
        const std::size_t k = ks[random.below(std::size(ks))];
        const Shape shape = kAllShapes[random.below(std::size(kAllShapes))];
        const ElementType type =
            is_extreme(shape) ? ElementType::float64 : kAllTypes[random.below(4)];
        const Metric metric = kAllMetrics[random.below(4)];
        SCOPED_TRACE(name_of(shape, type, metric, d, k) + ", n " + std::to_string(n));
        const TypedRows items(random.rows(shape, n, d), type, d);
        const std::size_t most_at_once = is_extreme(shape) ? 100 : 3000;
        const TypedRows queries(random.rows(shape, 1 + random.below(most_at_once), d), type, d);
        ASSERT_NO_FATAL_FAILURE(expect_same({.k = k, .metric = metric}, queries, items));
    }
    std::printf("%llu queries, none of which differs\n",
                static_cast<unsigned long long>(queries_compared));
}

}  // namespace
}  // namespace gputext
