#include "kernels/knn/k_means.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/knn/detail/fp16_filter.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::DoubleRows;
using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// The CPU's operator, which its own test holds against a plain one, gives what is expected.
class KMeansOnDevice : public testing::RingTest {
protected:
    Result<KMeans> run(const KMeansParameters& parameters, const TypedRows& items) {
        Execution execution(4);
        return gpu::k_means(parameters, items.vectors(), work, ring(), execution);
    }

    void expect_same(const KMeansParameters& parameters, const TypedRows& items) {
        Execution execution(4);
        const auto wanted = k_means(parameters, items.vectors(), execution);
        const auto found = run(parameters, items);
        expect_equal(found, wanted);
    }

    static void expect_equal(const Result<KMeans>& found, const Result<KMeans>& wanted) {
        ASSERT_EQ(found.ok(), wanted.ok()) << found.status().message();
        if (!wanted.ok()) {
            EXPECT_EQ(found.status().message(), wanted.status().message());
            return;
        }
        EXPECT_EQ(found->clusters, wanted->clusters);
        EXPECT_TRUE(same_bits(found->distances, wanted->distances));
        EXPECT_EQ(found->sizes, wanted->sizes);
        EXPECT_TRUE(same_bits(found->centroids, wanted->centroids));
        EXPECT_EQ(found->iterations, wanted->iterations);
        EXPECT_EQ(found->converged, wanted->converged);
        EXPECT_EQ(found->inertia, wanted->inertia);
    }
};

TEST_F(KMeansOnDevice, EqualsTheCpus) {
    RandomRows random;
    const auto n = static_cast<std::size_t>(testing::rounds(5000));
    for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::copies, Shape::clusters,
                              Shape::near_identical, Shape::outliers})
        for (const std::size_t d : {1, 16, 41, 128})
            for (const ElementType type : {ElementType::float16, ElementType::float32,
                                           ElementType::float64, ElementType::int32})
                for (const Metric metric : {Metric::euclidean, Metric::cosine}) {
                    auto rows = random.rows(shape, n, d);
                    for (auto& row : rows)  // none is all zeros, in no type
                        if (metric == Metric::cosine)
                            row[0] = std::trunc(row[0]) + (row[0] < 0 ? -1 : 1);
                    const TypedRows items(rows, type, d);
                    for (const std::size_t k : {1, 10, 200}) {
                        if (k > n) continue;
                        SCOPED_TRACE("shape " + std::to_string(static_cast<int>(shape)) + ", d " +
                                     std::to_string(d) + ", type " +
                                     std::to_string(static_cast<int>(type)) + ", metric " +
                                     std::to_string(static_cast<int>(metric)) + ", k " +
                                     std::to_string(k));
                        ASSERT_NO_FATAL_FAILURE(
                            expect_same({.k = k, .metric = metric, .iterations = 5}, items));
                    }
                }
}

/// Enough centroids for many blocks of the filter, and items in many tiles of it.
TEST_F(KMeansOnDevice, ManyCentroidsEqualTheCpus) {
    RandomRows random;
    const auto n = static_cast<std::size_t>(testing::rounds(60000));
    for (const Shape shape : {Shape::gaussian, Shape::clusters, Shape::outliers})
        for (const std::size_t d : {20, 100})
            for (const Metric metric : {Metric::euclidean, Metric::cosine}) {
                const TypedRows items(random.rows(shape, n, d), ElementType::float32, d);
                ASSERT_NO_FATAL_FAILURE(
                    expect_same({.k = n / 20, .metric = metric, .iterations = 4}, items));
            }
}

/// Were all of the first 97 centroids but one to be decided at once, each item would be compared
/// with most of them.
TEST_F(KMeansOnDevice, FirstCentroidsTakeFewExactDistances) {
    RandomRows random;
    constexpr std::size_t n = 20000;
    const TypedRows items(random.rows(Shape::gaussian, n, 64), ElementType::float32, 64);
    const auto found = run({.k = 97, .iterations = 1}, items);
    ASSERT_TRUE(found.ok()) << found.status().message();
    gpu::Fp16FilterDevice device;
    ASSERT_TRUE(device.look().ok());
    if (device.can_filter(64)) {
        EXPECT_LT(found->rescored, 50 * n);
    }
}

/// Items that do not fit are uploaded for each assignment, in tiles.
TEST_F(KMeansOnDevice, AnswersDoNotDependOnMemory) {
    RandomRows random;
    const TypedRows items(random.rows(Shape::gaussian, 3000, 50), ElementType::float32, 50);
    for (const Metric metric : {Metric::euclidean, Metric::cosine}) {
        const KMeansParameters parameters{.k = 200, .metric = metric, .iterations = 10};
        const gpu::KMeansBytes bytes = gpu::k_means_bytes(parameters, items.vectors());
        Execution execution(4);
        const auto wanted = k_means(parameters, items.vectors(), execution);
        for (const std::size_t part : {0, 1, 3, 8}) {
            work.bytes = bytes.least + (bytes.good - bytes.least) * part / 8;
            SCOPED_TRACE(std::to_string(work.bytes) + " bytes");
            ASSERT_NO_FATAL_FAILURE(expect_equal(run(parameters, items), wanted));
        }
        work.bytes = bytes.least - 1;
        const auto refused = run(parameters, items);
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.status().code(), ErrorCode::out_of_memory);
    }
}

/// A seed of the CPU's test, with which a cluster loses its last item in the first step.
TEST_F(KMeansOnDevice, EmptyClustersTakeTheFarthestItems) {
    const DoubleRows plane = {{7, 9}, {7, 2},  {7, 5}, {3, 6}, {0, 7},  {6, 0},  {8, 8}, {2, 25},
                              {3, 2}, {9, 36}, {9, 8}, {1, 3}, {49, 2}, {1, 49}, {6, 1}, {3, 6},
                              {0, 5}, {5, 0},  {6, 4}, {2, 1}, {4, 5},  {8, 25}, {7, 5}, {1, 1}};
    const TypedRows items(plane, ElementType::float32, 2);
    const auto first = run({.k = 9, .seed = 159, .iterations = 1}, items);
    ASSERT_TRUE(first.ok());
    EXPECT_EQ(std::ranges::count(first->sizes, 0u), 1);
    for (std::size_t iterations = 1; iterations < 6; ++iterations)
        ASSERT_NO_FATAL_FAILURE(
            expect_same({.k = 9, .seed = 159, .iterations = iterations}, items));
}

TEST_F(KMeansOnDevice, StopsAndRefusesAsTheCpu) {
    const TypedRows items(DoubleRows{{0, 0}, {1, 1}, {2, 2}}, ElementType::float32, 2);
    expect_same({.k = 4}, items);
    expect_same({.k = 2, .metric = Metric::cosine}, items);
    Execution execution(2);
    execution.request_stop();
    const auto answer = gpu::k_means({.k = 2}, items.vectors(), work, ring(), execution);
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.status().code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
