#include "kernels/knn/k_means.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

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
