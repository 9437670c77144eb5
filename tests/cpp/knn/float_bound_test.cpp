#include "cpp/knn/float_bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace gputext {
namespace {

/// Distances as others compute them: in single precision, one term after the other, fused or not.
double float_distance(Metric metric, const std::vector<float>& a, const std::vector<float>& b,
                      bool fused) {
    float sum = 0, square_a = 0, square_b = 0;
    const auto add = [&](float& to, float x, float y) {
        if (fused)
            to = std::fma(x, y, to);
        else
            to += x * y;
    };
    for (std::size_t i = 0; i < a.size(); ++i) {
        const float difference = a[i] - b[i];
        if (metric == Metric::euclidean) add(sum, difference, difference);
        if (metric == Metric::manhattan) sum += std::fabs(difference);
        if (metric == Metric::inner_product || metric == Metric::cosine) add(sum, a[i], b[i]);
        add(square_a, a[i], a[i]);
        add(square_b, b[i], b[i]);
    }
    if (metric == Metric::euclidean) return std::sqrt(static_cast<double>(sum));
    if (metric == Metric::manhattan) return sum;
    if (metric == Metric::inner_product) return -static_cast<double>(sum);
    const double similarity =
        sum / std::sqrt(static_cast<double>(square_a) * static_cast<double>(square_b));
    return 1 - std::clamp(similarity, -1.0, 1.0);
}

Vectors view(const std::vector<float>& row) {
    return {ElementType::float32, 1, row.size(), row.data(), {}, {}};
}

double exact_distance(Metric metric, const std::vector<float>& a, const std::vector<float>& b) {
    const Vectors query = view(a), item = view(b);
    Distances distances(metric, query, item, Simd::portable);
    distances.set_query(0);
    return distances(0);
}

TEST(FloatBound, HoldsForRandomVectors) {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (const Metric metric :
         {Metric::euclidean, Metric::cosine, Metric::inner_product, Metric::manhattan}) {
        for (int round = 0; round < 3000; ++round) {
            const std::size_t dimensions = 1 + random() % 300;
            const float scale = std::ldexp(1.0F, static_cast<int>(random() % 50) - 25);
            const float spread = round % 3 == 0 ? 1e-4F : 1.0F;
            std::vector<float> a(dimensions), b(dimensions);
            for (std::size_t i = 0; i < dimensions; ++i) {
                a[i] = scale * (1 + normal(random));
                b[i] = a[i] + scale * spread * normal(random);
            }
            NormRange items;
            items.add(norm_square(view(b), 0));
            const double exact = exact_distance(metric, a, b);
            const auto least = least_in_single_precision(metric, dimensions, exact,
                                                         norm_square(view(a), 0), items);
            ASSERT_TRUE(least.has_value());
            for (const bool fused : {false, true})
                ASSERT_LE(*least, float_distance(metric, a, b, fused));
            if (metric == Metric::euclidean || metric == Metric::manhattan) {
                ASSERT_GE(*least, exact * (1 - 1e-4));
            }
        }
    }
}

/// The cosine of opposite vectors is exactly -1, and in floats often a little above it.
TEST(FloatBound, HoldsForOppositeVectors) {
    std::mt19937 random(8);
    std::normal_distribution<float> normal;
    NormRange items;
    for (int round = 0; round < 3000; ++round) {
        const std::size_t dimensions = 1 + random() % 300;
        std::vector<float> a(dimensions), b(dimensions);
        for (std::size_t i = 0; i < dimensions; ++i) {
            a[i] = normal(random);
            b[i] = -3 * a[i];
        }
        items.add(norm_square(view(b), 0));
        const auto least = least_in_single_precision(Metric::cosine, dimensions,
                                                     exact_distance(Metric::cosine, a, b),
                                                     norm_square(view(a), 0), items);
        ASSERT_TRUE(least.has_value());
        for (const bool fused : {false, true})
            ASSERT_LE(*least, float_distance(Metric::cosine, a, b, fused));
    }
}

TEST(FloatBound, IsNoneWhereFloatsMayOverflowOrVanish) {
    NormRange items;
    items.add(1);
    EXPECT_TRUE(least_in_single_precision(Metric::euclidean, 3, 1, 0, items));
    EXPECT_TRUE(least_in_single_precision(Metric::euclidean, 3, 1, 1, items));
    EXPECT_FALSE(least_in_single_precision(Metric::euclidean, 3, 1, 0x1p101, items));
    EXPECT_FALSE(least_in_single_precision(Metric::euclidean, 3, 1, 0x1p-81, items));
    EXPECT_FALSE(least_in_single_precision(Metric::euclidean, 1 << 15, 1, 1, items));
    items.add(0x1p-90);
    EXPECT_FALSE(least_in_single_precision(Metric::euclidean, 3, 1, 1, items));
}

TEST(NormRange, HasTheLeastThatIsNotZeroAndTheLargest) {
    const std::vector<float> rows = {0, 0, 3, 4, 1, 0};
    const Vectors vectors{ElementType::float32, 3, 2, rows.data(), {}, {}};
    Execution execution(2);
    const Result<NormRange> range = norm_range(vectors, execution);
    ASSERT_TRUE(range.ok());
    EXPECT_EQ(range->least, 1);
    EXPECT_EQ(range->largest, 25);
}

}  // namespace
}  // namespace gputext
