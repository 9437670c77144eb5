#include "cpp/knn/k_means.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <limits>
#include <thread>

#include "cpp/knn/cluster_assignment.hpp"
#include "cpp/knn/detail/cluster_sums.hpp"
#include "cpp/knn/detail/first_centroids.hpp"
#include "cpp/knn/shared_k_means.hpp"
#include "tests/support/on_each_simd.hpp"
#include "tests/support/plain_k_means.hpp"
#include "tests/support/stops_soon.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::DoubleRow;
using testing::DoubleRows;
using testing::kAllShapes;
using testing::kEachSimd;
using testing::kSanitized;
using testing::name_of_simd;
using testing::OnEachSimd;
using testing::PlainKMeans;
using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

Result<KMeans> run(const KMeansParameters& parameters, const TypedRows& items,
                   unsigned threads = 3) {
    Execution execution(threads);
    return k_means(parameters, items.vectors(), execution);
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

void expect_equal(const KMeans& found, const KMeans& wanted) {
    EXPECT_EQ(found.clusters, wanted.clusters);
    EXPECT_TRUE(same_bits(found.distances, wanted.distances));
    EXPECT_EQ(found.sizes, wanted.sizes);
    EXPECT_TRUE(same_bits(found.centroids, wanted.centroids));
    EXPECT_EQ(found.dimensions, wanted.dimensions);
    EXPECT_EQ(found.iterations, wanted.iterations);
    EXPECT_EQ(found.converged, wanted.converged);
    EXPECT_EQ(found.inertia, wanted.inertia);
}

/// Rows that metric cosine takes: none is all zeros.
DoubleRows with_directions(DoubleRows rows) {
    for (DoubleRow& row : rows)
        if (std::all_of(row.begin(), row.end(), [](double x) { return std::fabs(x) < 1e-200; }))
            row[0] = 1;
    return rows;
}

/// Compares every item with every centroid, and keeps what it found to itself until it is asked,
/// as a device does.
class PlainAssignment : public ClusterAssignment {
public:
    PlainAssignment(const AssignmentTask& task, int calls)
        : metric_(task.parameters.metric),
          items_(task.items),
          seen_(task.clusters),
          sums_(metric_, items_, task.means, task.parameters.k, task.parameters.simd),
          clusters_(seen_.clusters.begin(), seen_.clusters.end()),
          distances_(seen_.distances.begin(), seen_.distances.end()),
          calls_(calls) {}

    std::size_t steps() const override { return 1; }
    Status add(const Vectors& centroids, std::uint32_t first, Execution&) override {
        if (calls_-- == 0) return {ErrorCode::device_lost, "the device is gone"};
        find(centroids, first);
        return {};
    }
    Result<std::uint64_t> assign(const Vectors& centroids, Execution&) override {
        if (calls_-- == 0) return Status(ErrorCode::device_lost, "the device is gone");
        const auto before = clusters_;
        std::ranges::fill(distances_, std::numeric_limits<double>::infinity());
        find(centroids, 0);
        std::uint64_t changed = 0;
        for (std::size_t i = 0; i < items_.rows; ++i) changed += clusters_[i] != before[i];
        return changed;
    }
    Status fetch(Execution&) override {
        std::ranges::copy(clusters_, seen_.clusters.begin());
        std::ranges::copy(distances_, seen_.distances.begin());
        return {};
    }
    Status move(std::uint32_t item, std::uint32_t cluster) override {
        clusters_[item] = cluster;
        return {};
    }
    Result<ClusterTotals> totals(Execution& execution) override {
        GPUTEXT_TRY(sums_.set(clusters_, execution));
        return ClusterTotals{sums_.sums(), sums_.sizes()};
    }
    std::uint64_t rescored() const override { return 0; }

private:
    void find(const Vectors& centroids, std::uint32_t first) {
        Distances distances(metric_, items_, centroids, best_simd());
        for (std::size_t i = 0; i < items_.rows; ++i) {
            distances.set_query(i);
            for (std::uint32_t c = 0; c < centroids.rows; ++c)
                if (distances(c) < distances_[i]) {
                    distances_[i] = distances(c);
                    clusters_[i] = first + c;
                }
        }
    }

    Metric metric_;
    const Vectors& items_;
    ItemClusters seen_;
    ClusterSums sums_;
    std::vector<std::uint32_t> clusters_;
    std::vector<double> distances_;
    int calls_;  // until an error
};

Result<KMeans> run_plainly(const KMeansParameters& parameters, const TypedRows& rows, int calls) {
    SharedKMeans shared(parameters, rows.vectors(), 1);
    Execution execution(3);
    GPUTEXT_TRY(shared.take_part(
        [calls](const AssignmentTask& task, const UseAssignment& use) {
            PlainAssignment assignment(task, calls);
            return use(assignment);
        },
        execution));
    return shared.take_answer();
}

class KMeansOnEach : public OnEachSimd {
protected:
    void expect_plain_answer(KMeansParameters parameters, const TypedRows& items) {
        parameters.simd = GetParam();
        const auto wanted = PlainKMeans(parameters, items.rows()).run();
        for (const unsigned threads : {1u, 3u}) {
            const auto found = run(parameters, items, threads);
            ASSERT_EQ(found.ok(), wanted.has_value()) << found.status().message();
            if (!wanted) {
                EXPECT_EQ(found.status().code(), ErrorCode::invalid_argument);
                continue;
            }
            expect_equal(*found, *wanted);
            if (::testing::Test::HasFailure()) return;
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Simd, KMeansOnEach, kEachSimd, name_of_simd);

TEST_P(KMeansOnEach, EqualsThePlainAnswerOnAllShapes) {
    RandomRows random;
    const std::size_t n = kSanitized ? 60 : 200;
    for (const Shape shape : kAllShapes) {
        // Beyond the range of float, or all zeros there
        if (shape == Shape::huge || shape == Shape::mixed || shape == Shape::tiny) continue;
        for (const std::size_t d : {1, 3, 41})
            for (const ElementType type : {ElementType::float32, ElementType::float64})
                for (const Metric metric : {Metric::euclidean, Metric::cosine}) {
                    auto rows = random.rows(shape, n, d);
                    if (metric == Metric::cosine) rows = with_directions(std::move(rows));
                    const TypedRows items(rows, type, d);
                    for (const std::size_t k : {1, 2, 7, 60}) {
                        SCOPED_TRACE("shape " + std::to_string(static_cast<int>(shape)) + ", d " +
                                     std::to_string(d) + ", k " + std::to_string(k) + ", metric " +
                                     std::to_string(static_cast<int>(metric)));
                        expect_plain_answer({.k = k, .metric = metric, .seed = random.below(1000)},
                                            items);
                        if (HasFailure()) return;
                    }
                }
    }
}

TEST_P(KMeansOnEach, EqualsThePlainAnswerOnAllTypesAndManySizes) {
    RandomRows random;
    constexpr ElementType types[] = {ElementType::float16, ElementType::float32,
                                     ElementType::float64, ElementType::int32};
    constexpr Shape shapes[] = {Shape::gaussian, Shape::grid, Shape::copies, Shape::clusters,
                                Shape::near_identical};
    constexpr std::size_t sizes[] = {1, 2, 5, 16, 17, 70};
    for (int round = 0; round < (kSanitized ? 20 : 100); ++round) {
        const std::size_t d = sizes[random.below(std::size(sizes))], n = 1 + random.below(300);
        const Metric metric = random.below(2) == 0 ? Metric::euclidean : Metric::cosine;
        const Shape shape = shapes[random.below(std::size(shapes))];
        auto rows = random.rows(shape, n, d);
        if (metric == Metric::cosine) rows = with_directions(std::move(rows));
        for (DoubleRow& row : rows)  // int32 cuts fractions off
            if (metric == Metric::cosine) row[0] = std::trunc(row[0]) + (row[0] < 0 ? -1 : 1);
        const TypedRows items(rows, types[random.below(4)], d);
        const KMeansParameters parameters{.k = 1 + random.below(std::min<std::size_t>(n, 150)),
                                          .metric = metric,
                                          .seed = random.below(1000),
                                          .iterations = 1 + random.below(30)};
        SCOPED_TRACE("n " + std::to_string(n) + ", d " + std::to_string(d) + ", k " +
                     std::to_string(parameters.k) + ", shape " +
                     std::to_string(static_cast<int>(shape)));
        expect_plain_answer(parameters, items);
        if (HasFailure()) return;
    }
}

/// More than 96 centroids at once, and lists of near centroids that overflow.
TEST_P(KMeansOnEach, EqualsThePlainAnswerForManyCentroids) {
    RandomRows random;
    for (const Shape shape : {Shape::gaussian, Shape::near_identical, Shape::outliers}) {
        const std::size_t n = 900, d = 4, k = kSanitized ? 250 : 800;
        const TypedRows items(random.rows(shape, n, d), ElementType::float32, d);
        SCOPED_TRACE("shape " + std::to_string(static_cast<int>(shape)));
        expect_plain_answer({.k = k, .iterations = 3}, items);
    }
}

TEST_P(KMeansOnEach, EachDistinctItemCanBeItsOwnCluster) {
    RandomRows random;
    const TypedRows items(random.rows(Shape::gaussian, 150, 3), ElementType::float32, 3);
    expect_plain_answer({.k = 150}, items);
    const auto answer = run({.k = 150, .simd = GetParam()}, items);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->sizes, std::vector<std::uint64_t>(150, 1));
    EXPECT_EQ(answer->inertia, 0);
    EXPECT_TRUE(answer->converged);
    EXPECT_EQ(answer->iterations, 1u);
}

/// Four corners of a square, and 2^24 + 1, which float does not have: ties, and centroids that move
/// although their only item does not.
TEST_P(KMeansOnEach, EqualsThePlainAnswerOnTies) {
    const DoubleRows rows = {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0.5, 0.5}, {0, 0}, {-0.0, 1}};
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
        for (std::size_t k = 1; k <= 6; ++k)
            expect_plain_answer({.k = k, .seed = seed}, TypedRows(rows, ElementType::float32, 2));
        const DoubleRows large = {{16777217, 0}, {16777216, 0}, {16777218, 0}, {16777219, 0}};
        for (std::size_t k = 1; k <= 4; ++k)
            expect_plain_answer({.k = k, .seed = seed}, TypedRows(large, ElementType::float64, 2));
    }
}

/// Opposite directions have a mean without one.
TEST_P(KMeansOnEach, EqualsThePlainAnswerOnOppositeDirections) {
    const DoubleRows rows = {{1, 0}, {-1, 0}, {0, 2}, {0, -2}, {3, 3}, {-3, -3}, {1, -1}};
    for (std::uint64_t seed = 0; seed < 40; ++seed)
        for (std::size_t k = 1; k <= 7; ++k)
            expect_plain_answer({.k = k, .metric = Metric::cosine, .seed = seed},
                                TypedRows(rows, ElementType::float32, 2));
}

/// With these seeds a cluster loses its last item in the first step.
/// Of 9 clusters, begun with seed 159, one loses all items.
const DoubleRows kPlane = {{7, 9}, {7, 2},  {7, 5}, {3, 6}, {0, 7},  {6, 0},  {8, 8}, {2, 25},
                           {3, 2}, {9, 36}, {9, 8}, {1, 3}, {49, 2}, {1, 49}, {6, 1}, {3, 6},
                           {0, 5}, {5, 0},  {6, 4}, {2, 1}, {4, 5},  {8, 25}, {7, 5}, {1, 1}};

TEST_P(KMeansOnEach, EmptyClustersTakeTheFarthestItems) {
    const DoubleRows space = {{1, 7, 7},  {36, 2, 8},  {49, 0, 1}, {1, 9, 3},  {7, 6, 36},
                              {4, 0, 5},  {0, 4, 0},   {3, 7, 2},  {5, 2, 16}, {4, 8, 9},
                              {8, 0, 7},  {8, 8, 0},   {8, 0, 0},  {5, 4, 36}, {5, 6, 36},
                              {36, 3, 8}, {64, 8, 64}, {3, 1, 6},  {3, 4, 3},  {6, 1, 4},
                              {0, 1, 1},  {7, 1, 0},   {6, 2, 8},  {7, 0, 6}};
    const auto expect_empty_one = [&](const DoubleRows& rows, std::size_t d, std::uint64_t seed) {
        const TypedRows items(rows, ElementType::float32, d);
        const auto answer = run({.k = 9, .seed = seed, .iterations = 1}, items);
        ASSERT_TRUE(answer.ok());
        EXPECT_EQ(std::count(answer->sizes.begin(), answer->sizes.end(), 0u), 1);
        for (std::size_t iterations = 1; iterations < 6; ++iterations)
            expect_plain_answer({.k = 9, .seed = seed, .iterations = iterations}, items);
        const auto next = run({.k = 9, .seed = seed, .iterations = 2}, items);
        EXPECT_EQ(std::count(next->sizes.begin(), next->sizes.end(), 0u), 0);
        expect_equal(*run_plainly({.k = 9, .seed = seed, .iterations = 2}, items, -1), *next);
    };
    expect_empty_one(kPlane, 2, 159);
    expect_empty_one(space, 3, 296);
}

/// Of many tasks, and with few exact distances for each item and step.
TEST_P(KMeansOnEach, AnswersDoNotDependOnThreads) {
    RandomRows random;
    const std::size_t n = kSanitized ? 2000 : 20000;
    const TypedRows items(random.rows(Shape::gaussian, n, 20), ElementType::float32, 20);
    const KMeansParameters parameters{.k = 120, .iterations = 12, .simd = GetParam()};
    const auto wanted = run(parameters, items, 1);
    ASSERT_TRUE(wanted.ok());
    for (const unsigned threads : {2u, 5u}) {
        const auto found = run(parameters, items, threads);
        ASSERT_TRUE(found.ok());
        expect_equal(*found, *wanted);
    }
    const auto portable = run({.k = 120, .iterations = 12, .simd = Simd::portable}, items, 2);
    expect_equal(*portable, *wanted);
    EXPECT_LT(wanted->rescored, n * 12 * 3);
}

TEST(KMeans, AnAssignmentElsewhereGivesTheSameAnswer) {
    RandomRows random;
    for (const Metric metric : {Metric::euclidean, Metric::cosine})
        for (const ElementType type : {ElementType::float32, ElementType::float64})
            for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::copies}) {
                const TypedRows items(with_directions(random.rows(shape, 1500, 5)), type, 5);
                const KMeansParameters parameters{.k = 130, .metric = metric, .iterations = 40};
                const auto found = run_plainly(parameters, items, -1);
                const auto wanted = run(parameters, items);
                ASSERT_EQ(found.ok(), wanted.ok()) << found.status().message();
                if (found.ok()) expect_equal(*found, *wanted);
            }
}

TEST(KMeans, ErrorsOfAnAssignmentEndIt) {
    const TypedRows items({{0}, {1}, {2}}, ElementType::float32, 1);
    ASSERT_TRUE(run_plainly({.k = 3}, items, -1).ok());
    for (int calls = 0; calls < 3; ++calls) {
        const auto answer = run_plainly({.k = 3}, items, calls);
        ASSERT_FALSE(answer.ok());
        EXPECT_EQ(answer.status().code(), ErrorCode::device_lost);
    }
}

/// Threads that take part in one clustering, each with its own kind of assignment.
class Together {
public:
    static constexpr std::size_t kNobody = SIZE_MAX;

    Together(const KMeansParameters& parameters, const TypedRows& rows, std::size_t threads)
        : shared_(parameters, rows.vectors(), threads), statuses_(threads), had_part_(threads) {}

    /// Runs them all; one of them fails after so many calls of its assignment.
    void run(std::size_t failing = kNobody, int calls = 0) {
        std::vector<std::thread> threads;
        for (std::size_t number = 0; number < statuses_.size(); ++number)
            threads.emplace_back([=, this] {
                statuses_[number] = take_part(number, number == failing ? calls : -1);
            });
        for (std::thread& thread : threads) thread.join();
    }
    Status take_part(std::size_t number, int calls) {
        Execution execution(2);
        return shared_.take_part(
            [&](const AssignmentTask& task, const UseAssignment& use) {
                had_part_[number] = 1;
                if (number % 2 == 0 && calls < 0) return with_host_assignment(task, use, execution);
                PlainAssignment plain(task, calls);
                return use(plain);
            },
            execution);
    }

    const std::vector<Status>& statuses() const { return statuses_; }
    /// Threads may come too late to have one.
    bool had_part(std::size_t number) const { return had_part_[number] == 1; }
    bool all_had_part() const { return std::ranges::count(had_part_, 1) == std::ssize(had_part_); }
    const KMeans& answer() const { return shared_.answer(); }

private:
    SharedKMeans shared_;
    std::vector<Status> statuses_;
    std::vector<int> had_part_;
};

/// Calls `run`, which says whether all threads had a part, until they had.
void expect_together(const std::function<bool()>& run) {
    bool together = false;
    for (int tries = 0; tries < 200 && !together && !::testing::Test::HasFatalFailure(); ++tries)
        together = run();
    EXPECT_TRUE(together);
}

TEST(SharedKMeans, GivesTheSameAnswerOnAnyNumberOfThreads) {
    RandomRows random;
    for (const Metric metric : {Metric::euclidean, Metric::cosine})
        for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::clusters})
            for (const std::size_t threads : {2, 3, 5}) {
                const TypedRows items(with_directions(random.rows(shape, 900, 5)),
                                      ElementType::float32, 5);
                const KMeansParameters parameters{.k = 130, .metric = metric, .iterations = 40};
                const auto wanted = run(parameters, items);
                ASSERT_TRUE(wanted.ok()) << wanted.status().message();
                expect_together([&] {
                    Together together(parameters, items, threads);
                    together.run();
                    for (const Status& status : together.statuses())
                        EXPECT_TRUE(status.ok()) << status.message();
                    expect_equal(together.answer(), *wanted);
                    return together.all_had_part();
                });
            }
}

TEST(SharedKMeans, GivesEmptyClustersTheSameItems) {
    const TypedRows items(kPlane, ElementType::float32, 2);
    const KMeansParameters parameters{.k = 9, .seed = 159, .iterations = 5};
    const auto wanted = run(parameters, items);
    ASSERT_TRUE(wanted.ok());
    for (const std::size_t threads : {2, 3, 7})
        expect_together([&] {
            Together together(parameters, items, threads);
            together.run();
            expect_equal(together.answer(), *wanted);
            return together.all_had_part();
        });
}

TEST(SharedKMeans, ErrorsEndItForAllThreads) {
    const TypedRows items(DoubleRows(50, DoubleRow(3, 1.0)), ElementType::float32, 3);
    expect_together([&] {
        Together together({.k = 2}, items, 2);
        together.run();
        for (std::size_t i = 0; i < 2; ++i) {
            const Status& status = together.statuses()[i];
            // One that comes too late has nothing to do.
            if (!together.had_part(i) && status.ok()) continue;
            EXPECT_EQ(status.code(), ErrorCode::invalid_argument) << status.message();
        }
        return together.all_had_part();
    });
    // Before any of them has items
    const TypedRows nowhere({{1}, {0}, {2}}, ElementType::float32, 1);
    Together together({.k = 2, .metric = Metric::cosine}, nowhere, 3);
    together.run();
    for (const Status& status : together.statuses())
        EXPECT_EQ(status.code(), ErrorCode::invalid_argument) << status.message();
}

TEST(SharedKMeans, OthersBeginAnewWithoutOneThatFails) {
    RandomRows random;
    const TypedRows items(random.rows(Shape::clusters, 300, 4), ElementType::float32, 4);
    const KMeansParameters parameters{.k = 7, .iterations = 20};
    const auto wanted = run(parameters, items);
    ASSERT_TRUE(wanted.ok());
    for (const std::size_t threads : {1, 2, 3})
        for (std::size_t failing = 0; failing < threads; ++failing)
            for (const int calls : {0, 1, 2, 4})
                expect_together([&] {
                    Together together(parameters, items, threads);
                    together.run(failing, calls);
                    const bool had_part = together.all_had_part();
                    for (std::size_t i = 0; i < threads; ++i) {
                        const Status& status = together.statuses()[i];
                        EXPECT_TRUE(status.ok() ||
                                    (i == failing && status.code() == ErrorCode::device_lost))
                            << status.message();
                    }
                    // One that had no part does it now.
                    EXPECT_TRUE(together.take_part(0, -1).ok());
                    expect_equal(together.answer(), *wanted);
                    return had_part && !together.statuses()[failing].ok();
                });
}

TEST(KMeans, InertiaNeverRises) {
    RandomRows random;
    for (const Metric metric : {Metric::euclidean, Metric::cosine}) {
        const TypedRows items(with_directions(random.rows(Shape::gaussian, 3000, 8)),
                              ElementType::float32, 8);
        double before = std::numeric_limits<double>::infinity();
        for (std::size_t iterations = 1; iterations < 25; ++iterations) {
            const auto answer = run({.k = 30, .metric = metric, .iterations = iterations}, items);
            ASSERT_TRUE(answer.ok());
            EXPECT_LE(answer->inertia, before * (1 + 1e-6)) << iterations;
            before = answer->inertia;
        }
    }
}

/// Far beyond what a single wrong weight would leave of it: k-means++ finds separated clusters.
TEST(KMeans, FindsSeparatedClusters) {
    std::mt19937_64 generator(1);
    std::normal_distribution<double> normal;
    constexpr std::size_t clusters = 20, d = 16;
    DoubleRows centers(clusters, DoubleRow(d)), rows;
    for (auto& center : centers)
        for (double& x : center) x = 1000 * normal(generator);
    for (std::size_t i = 0; i < 2000; ++i) {
        rows.push_back(centers[i % clusters]);
        for (double& x : rows.back()) x += normal(generator);
    }
    const TypedRows items(rows, ElementType::float32, d);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const auto answer = run({.k = clusters, .seed = seed}, items);
        ASSERT_TRUE(answer.ok());
        for (std::size_t i = clusters; i < rows.size(); ++i)
            ASSERT_EQ(answer->clusters[i], answer->clusters[i % clusters]) << "seed " << seed;
        EXPECT_EQ(answer->sizes, std::vector<std::uint64_t>(clusters, 2000 / clusters));
    }
}

/// Of three items at distances 1 and 3 from the first centroid the farther is drawn nine times as
/// often.
TEST(KMeans, DrawsInProportionToSquaredDistances) {
    const TypedRows items({{0}, {1}, {-3}}, ElementType::float32, 1);
    int near = 0, far = 0;
    for (std::uint64_t seed = 0; seed < 6000; ++seed) {
        CentroidDraws draws(seed);
        if (draws.below(3) != 0) continue;
        const std::vector<double> distances{0, 1, 3};
        FixedWeights weights(Metric::euclidean, distances);
        Execution execution(1);
        ASSERT_TRUE(weights.fix(execution).ok());
        const std::size_t item = weights.hit(draws.below(weights.total())).item;
        near += item == 1;
        far += item == 2;
    }
    EXPECT_NEAR(near, (near + far) / 10.0, 5 * std::sqrt((near + far) * 0.09));
    EXPECT_GT(near + far, 1800);
}

void expect_error(const KMeansParameters& parameters, const TypedRows& items,
                  const std::string& message, ErrorCode code = ErrorCode::invalid_argument) {
    const auto answer = run(parameters, items);
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.status().code(), code);
    EXPECT_EQ(answer.status().message(), message);
}

TEST(KMeans, WeighsDistancesOfAnySizeByTheDefinition) {
    constexpr std::size_t n = 1000;
    std::mt19937_64 generator(1);
    for (const double largest : {5e-324, 0x1.8p-1070, 0x1p-1023, 0x1p-1022, 1e-200, 1.0, 3.7, 1e200,
                                 std::numeric_limits<double>::max()})
        for (const Metric metric : {Metric::euclidean, Metric::cosine}) {
            const DistanceWeight weight(metric, largest, n);
            const int scale = bits_of_terms(n) - (metric == Metric::cosine ? 1 : 2);
            for (int i = 0; i < 1000; ++i) {
                const double share = static_cast<double>(generator() >> 11) * 0x1p-53;
                const double distance = i == 0 ? largest : std::scalbn(largest, -i % 40) * share;
                const double y = std::scalbn(distance, -std::ilogb(largest));
                const bool none = metric == Metric::cosine && distance < 0x1p-40;
                const double wanted = std::scalbn(metric == Metric::cosine ? y : y * y, scale);
                ASSERT_EQ(weight(distance), none ? 0 : static_cast<std::uint64_t>(wanted))
                    << largest << " " << distance;
            }
        }
}

TEST(KMeans, RefusesWhatHasNoAnswer) {
    const TypedRows items({{0, 0}, {1, 1}, {2, 2}}, ElementType::float32, 2);
    expect_error({.k = 0}, items, "k must be at least 1");
    expect_error({.k = 4}, items, "k is 4, but there are only 3 items");
    expect_error({.k = 2, .iterations = 0}, items, "the number of iterations must be at least 1");
    expect_error({.k = 2, .metric = Metric::manhattan}, items,
                 "k-means knows the metrics euclidean and cosine only");
    expect_error({.k = 2, .metric = Metric::inner_product}, items,
                 "k-means knows the metrics euclidean and cosine only");
    expect_error({.k = 2, .metric = Metric::cosine}, items,
                 "row 1 of the items is all zeros, which has no direction");
    expect_error({.k = 2}, TypedRows({{0, 0}, {0, -0.0}}, ElementType::float32, 2),
                 "k is 2, but the items have only 1 distinct vector");
    expect_error({.k = 4}, TypedRows({{1}, {2}, {3}, {3}, {2}, {1}}, ElementType::float64, 1),
                 "k is 4, but the items have only 3 distinct vectors");
    expect_error({.k = 3, .metric = Metric::cosine},
                 TypedRows({{1, 3}, {2, 6}, {3, 1}, {6, 2}}, ElementType::float32, 2),
                 "k is 3, but the items have only 2 distinct directions");
    expect_error({.k = 1}, TypedRows({{1e300}}, ElementType::float64, 1),
                 "row 1 of the items has elements beyond the range of real, which centroids have");
    expect_error({.k = 1}, TypedRows({{0, 0}, {0, 1e-300}}, ElementType::float64, 2),
                 "row 2 of the items has only elements that are 0 as real, the type of centroids");
    expect_error({.k = 1}, TypedRows({}, ElementType::float32, 1),
                 "k is 1, but there are only 0 items");
    expect_error({.k = 1}, TypedRows({{1, 0}}, ElementType::float32, 2, true),
                 "k-means takes dense vectors only");
    const auto nan = run({.k = 1}, TypedRows({{1}, {std::nan("")}}, ElementType::float32, 1));
    ASSERT_FALSE(nan.ok());
    EXPECT_EQ(nan.status().code(), ErrorCode::invalid_argument);
    EXPECT_NE(nan.status().message().find("item 1"), std::string::npos);
}

TEST(KMeans, RefusesWhatTakesTooMuchMemory) {
    const TypedRows items(DoubleRows(1000, DoubleRow(8)), ElementType::float32, 8);
    KMeansParameters parameters{.k = 2};
    const std::uint64_t bytes = k_means_bytes(parameters, items.vectors(), 3);
    EXPECT_GE(bytes, 1000u * 21);
    parameters.memory_limit = bytes - 1;
    const auto answer = run(parameters, items, 3);
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.status().code(), ErrorCode::memory_limit);
    EXPECT_NE(answer.status().message().find("k-means would take at least"), std::string::npos);
}

/// Whether a run that takes much longer ends within the time that a caller may wait, once it has
/// reached a phase.
void expect_cancelled_in(const char* phase) {
    std::mt19937_64 generator(1);
    std::normal_distribution<float> normal;
    const std::size_t n = 60000, d = 64;
    std::vector<float> elements(n * d);
    for (float& element : elements) element = normal(generator);
    const Vectors items{ElementType::float32, n, d, elements.data(), {}, {}};
    testing::expect_stops_soon(
        [&](Execution& execution) {
            const Status status =
                k_means({.k = 2000, .iterations = 1000000}, items, execution).status();
            EXPECT_EQ(status.code(), ErrorCode::cancelled);
            return status;
        },
        testing::in_phase(phase, 3), kSanitized ? 2000 : 500);
}

TEST(KMeans, StopsWhileItChoosesCentroids) {
    expect_cancelled_in("choosing first centroids");
}

TEST(KMeans, StopsWhileItAssignsItems) {
    expect_cancelled_in("assigning items");
}

}  // namespace
}  // namespace gputext
