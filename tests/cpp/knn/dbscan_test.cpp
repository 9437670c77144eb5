#include "cpp/knn/dbscan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <thread>

#include "cpp/knn/knn.hpp"
#include "tests/support/plain_dbscan.hpp"
#include "tests/support/test_size.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::DoubleRows;
using testing::plain_dbscan;
using testing::plain_distance;
using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

constexpr Metric kMetrics[] = {Metric::euclidean, Metric::manhattan, Metric::cosine};
constexpr std::uint32_t kNoise = DbscanClusters::kNoise;

void expect_equal(const DbscanClusters& found, const DbscanClusters& wanted) {
    ASSERT_EQ(found.clusters, wanted.clusters);
    ASSERT_EQ(found.core, wanted.core);
    ASSERT_EQ(found.count, wanted.count);
}

DbscanClusters run(const DbscanParameters& parameters, const Vectors& rows) {
    Execution execution(3);
    auto found = dbscan(parameters, rows, execution);
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found.ok() ? std::move(*found) : DbscanClusters();
}

/// The distance of two of the rows: with it as epsilon, there is a pair that is just near enough.
double some_distance(RandomRows& random, Metric metric, const DoubleRows& rows) {
    for (int attempt = 0; attempt < 20; ++attempt) {
        const auto distance = plain_distance(metric, rows[random.below(rows.size())],
                                             rows[random.below(rows.size())]);
        if (distance && *distance > 0 && std::isfinite(*distance)) return *distance;
    }
    return 0;
}

/// A distance that about so many of 1,000 pairs are within, by some of them.
double distance_of_nearest(RandomRows& random, Metric metric, const DoubleRows& rows,
                           std::size_t nearest) {
    std::vector<double> some(testing::tests_are_small() ? 50 : 1000);
    for (double& distance : some) distance = some_distance(random, metric, rows);
    std::sort(some.begin(), some.end());
    return some[nearest * some.size() / 1000];
}

TEST(Dbscan, IsThatOfTheDefinition) {
    RandomRows random;
    std::size_t clusters = 0, border = 0, noise = 0;
    for (const Shape shape : testing::kAllShapes)
        for (const std::size_t d : {1, 2, 9})
            for (const std::size_t n : {1, 2, 40, testing::kSanitized ? 80 : 200}) {
                const TypedRows rows(random.rows(shape, n, d), ElementType::float64, d);
                for (const Metric metric : kMetrics)
                    for (const std::size_t min_points : {1, 2, 3, 5, 12}) {
                        const double epsilon =
                            distance_of_nearest(random, metric, rows.rows(), 1 + random.below(200));
                        SCOPED_TRACE(std::to_string(static_cast<int>(shape)) + " d" +
                                     std::to_string(d) + " n" + std::to_string(n) + " metric " +
                                     std::to_string(static_cast<int>(metric)) + " epsilon " +
                                     std::to_string(epsilon) + " min_points " +
                                     std::to_string(min_points));
                        const DbscanParameters parameters{epsilon, min_points, metric};
                        const DbscanClusters wanted = plain_dbscan(parameters, rows.rows());
                        expect_equal(run(parameters, rows.vectors()), wanted);
                        if (HasFatalFailure()) return;
                        clusters += wanted.count;
                        for (std::size_t i = 0; i < n; ++i) {
                            border += wanted.core[i] == 0 && wanted.clusters[i] != kNoise;
                            noise += wanted.clusters[i] == kNoise;
                        }
                    }
            }
    EXPECT_GT(clusters, 100u);
    EXPECT_GT(border, 100u);
    EXPECT_GT(noise, 100u);
}

TEST(Dbscan, DoesNotDependOnTheTypeOfElements) {
    RandomRows random;
    for (const Shape shape : {Shape::grid, Shape::sparse, Shape::copies}) {
        const DoubleRows rows = random.rows(shape, 150, 6);
        for (const Metric metric : kMetrics)
            for (const std::size_t min_points : {2, 4}) {
                const TypedRows singles(rows, ElementType::float32, 6);
                const DbscanParameters parameters{
                    distance_of_nearest(random, metric, singles.rows(), 30), min_points, metric};
                const DbscanClusters wanted = plain_dbscan(parameters, singles.rows());
                expect_equal(run(parameters, singles.vectors()), wanted);
                const TypedRows sparse(rows, ElementType::float32, 6, true);
                expect_equal(run(parameters, sparse.vectors()), wanted);
            }
    }
}

/// Blocks become smaller until their neighbors fit, and larger again.
TEST(Dbscan, OfLittleMemoryIsTheSame) {
    RandomRows random;
    // A dense lump before and behind many rows that are apart.
    DoubleRows rows = random.rows(Shape::gaussian, 300, 3);
    for (int i = 0; i < 60; ++i)
        for (const int at : {i, 240 + i}) rows[at] = {1e-3 * random.normal(), 5, 5};
    const TypedRows typed(rows, ElementType::float64, 3);
    for (const std::size_t min_points : {1, 2, 3, 8, 40}) {
        DbscanParameters parameters{0.5, min_points};
        const DbscanClusters wanted = plain_dbscan(parameters, rows);
        parameters.answer_limit = 16 << 10;
        std::size_t refused = 0, searches = 0;
        DbscanSearch search;
        Execution execution(2);
        ASSERT_TRUE(search.set(parameters, typed.vectors(), execution).ok());
        search.share_out(1);
        const auto counted = [&](const KnnParameters& wanted_of, const Vectors& queries,
                                 const Vectors& among, const RowKeys& keys) {
            auto found = knn(wanted_of, queries, among, keys, execution);
            ++searches;
            refused += !found.ok();
            return found;
        };
        const Status status = search.run(0, counted, execution);
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_GE(refused, 1u);
        EXPECT_GT(searches, refused + 1);
        EXPECT_LT(searches, 150u) << "blocks became larger again";
        const auto found = search.clusters(execution);
        ASSERT_TRUE(found.ok());
        expect_equal(*found, wanted);
    }
}

/// Parts on threads of their own, one of which is ended by an error and goes on.
TEST(Dbscan, InPartsIsTheSame) {
    RandomRows random;
    for (int round = 0; round < (testing::kSanitized ? 4 : 20); ++round) {
        const Shape shape = round % 2 == 0 ? Shape::gaussian : Shape::grid;
        const TypedRows rows(random.rows(shape, 400, 2), ElementType::float32, 2);
        for (const std::size_t min_points : {1, 2, 3, 6}) {
            DbscanParameters parameters{
                distance_of_nearest(random, Metric::euclidean, rows.rows(), 10), min_points};
            const DbscanClusters wanted = plain_dbscan(parameters, rows.rows());
            parameters.answer_limit = 64 << 10;
            Execution execution(2);
            DbscanSearch search;
            ASSERT_TRUE(search.set(parameters, rows.vectors(), execution).ok());
            constexpr std::size_t parts = 5;
            search.share_out(parts);
            std::vector<std::thread> threads;
            for (std::size_t part = 0; part < parts; ++part)
                threads.emplace_back([&, part] {
                    Execution own(2, execution);
                    int failures = part == 2 ? 1 : 0, searches = 0;
                    const auto failing = [&](const KnnParameters& wanted_of,
                                             const Vectors& queries, const Vectors& among,
                                             const RowKeys& keys) -> Result<Neighbors> {
                        if (++searches > 1 && failures-- > 0)
                            return Status(ErrorCode::device_lost, "lost");
                        return knn(wanted_of, queries, among, keys, own);
                    };
                    Status status = search.run(part, failing, own);
                    if (status.code() == ErrorCode::device_lost)
                        status = search.run(part, failing, own);
                    EXPECT_TRUE(status.ok()) << status.message();
                });
            for (std::thread& thread : threads) thread.join();
            const auto found = search.clusters(execution);
            ASSERT_TRUE(found.ok());
            expect_equal(*found, wanted);
        }
    }
}

/// scikit-learn 1.9: DBSCAN(eps=1, min_samples=4).fit([[0], [1], [2], [1], [5], [6], [7], [6], [3],
/// [4], [20]]). 3 is at the border of one cluster, 4 at that of another, and 20 is noise.
TEST(Dbscan, OfALine) {
    const TypedRows rows({{0}, {1}, {2}, {1}, {5}, {6}, {7}, {6}, {3}, {4}, {20}},
                         ElementType::float64, 1);
    const DbscanClusters found = run({1, 4}, rows.vectors());
    EXPECT_EQ(found.clusters, (std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 1, 0, 1, kNoise}));
    EXPECT_EQ(found.core, (std::vector<std::uint8_t>{0, 1, 1, 1, 1, 1, 0, 1, 0, 0, 0}));
}

/// A row that is near two clusters is in the first of them, wherever it stands.
TEST(Dbscan, PutsABorderPointIntoTheFirstCluster) {
    // 0 is one away from a core row on either side; the right one's cluster begins first.
    for (const std::size_t place : {0, 1, 4, 7}) {
        DoubleRows rows = {{1.5}, {1}, {1.5}, {-1.5}, {-1}, {-1.5}};
        rows.insert(rows.begin() + static_cast<std::ptrdiff_t>(std::min(place, rows.size())), {0});
        const DbscanParameters parameters{1, 4};
        const DbscanClusters found =
            run(parameters, TypedRows(rows, ElementType::float32, 1).vectors());
        expect_equal(found, plain_dbscan(parameters, rows));
        EXPECT_EQ(found.count, 2u);
        EXPECT_EQ(found.clusters[std::min<std::size_t>(place, 6)], 0u);
    }
}

TEST(Dbscan, OfRowsWithoutDistanceIsNoise) {
    const TypedRows rows({{0, 0}, {0, 0}, {1, 0}, {2, 0}}, ElementType::float32, 2);
    for (const std::size_t min_points : {1, 2}) {
        const DbscanClusters found = run({2, min_points, Metric::cosine}, rows.vectors());
        EXPECT_EQ(found.clusters, (std::vector<std::uint32_t>{kNoise, kNoise, 0, 0}));
        EXPECT_EQ(found.core, (std::vector<std::uint8_t>{0, 0, 1, 1}));
    }
    EXPECT_EQ(run({0, 1}, rows.vectors()).clusters, (std::vector<std::uint32_t>{0, 0, 1, 2}));
    EXPECT_TRUE(run({1, 1}, TypedRows({}, ElementType::float32, 2).vectors()).clusters.empty());
}

TEST(Dbscan, RefusesWhatMakesNoSense) {
    const TypedRows rows({{1}, {2}}, ElementType::float32, 1);
    const TypedRows bad({{1}, {std::nan("")}}, ElementType::float32, 1);
    Execution execution(1);
    const auto message = [&](const DbscanParameters& parameters, const TypedRows& items) {
        const Status status = dbscan(parameters, items.vectors(), execution).status();
        EXPECT_EQ(status.code(), ErrorCode::invalid_argument);
        return status.message();
    };
    const double infinity = std::numeric_limits<double>::infinity();
    for (const double epsilon : {-1.0, infinity, -infinity, std::nan("")})
        EXPECT_EQ(message({epsilon}, rows), "epsilon must be a finite number of at least 0");
    EXPECT_EQ(message({1, 0}, rows), "min_points must be at least 1");
    EXPECT_EQ(message({1, 1, Metric::inner_product}, rows), "an inner product is no distance");
    EXPECT_EQ(message({1, 1}, bad), "item 1 has an element that is not a finite number");
}

TEST(Dbscan, KeepsToTheAnswerLimit) {
    RandomRows random;
    const TypedRows rows(random.rows(Shape::gaussian, 300, 2), ElementType::float32, 2);
    Execution execution(2);
    // One row has all others as neighbors.
    DbscanParameters parameters{1e9, 2};
    parameters.answer_limit = 299 * kBytesOfNeighbor / 2;
    EXPECT_EQ(dbscan(parameters, rows.vectors(), execution).status().code(),
              ErrorCode::memory_limit);
    // Each row fits, but not what is kept of all, none of which is core.
    parameters.min_points = 301;
    parameters.answer_limit = 100 << 10;
    const Status status = dbscan(parameters, rows.vectors(), execution).status();
    EXPECT_EQ(status.code(), ErrorCode::memory_limit) << status.message();
}

TEST(Dbscan, IsCancelled) {
    RandomRows random;
    const TypedRows rows(random.rows(Shape::gaussian, 300, 2), ElementType::float32, 2);
    const DbscanParameters parameters{0.5, 4};
    {
        Execution execution(2);
        execution.request_stop();
        EXPECT_EQ(dbscan(parameters, rows.vectors(), execution).status().code(),
                  ErrorCode::cancelled);
    }
    // After the search, and after all neighbors are taken.
    for (const bool searched : {true, false}) {
        Execution execution(2), of_search(2);
        DbscanSearch search;
        ASSERT_TRUE(search.set(parameters, rows.vectors(), execution).ok());
        search.share_out(1);
        const Status status = search.run(
            0,
            [&](const KnnParameters& wanted, const Vectors& queries, const Vectors& among,
                const RowKeys& keys) {
                if (searched) execution.request_stop();
                return knn(wanted, queries, among, keys, of_search);
            },
            execution);
        EXPECT_EQ(status.code(), searched ? ErrorCode::cancelled : ErrorCode::ok);
        execution.request_stop();
        EXPECT_EQ(search.clusters(execution).status().code(), ErrorCode::cancelled);
    }
}

}  // namespace
}  // namespace gputext
