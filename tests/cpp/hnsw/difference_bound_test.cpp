#include "cpp/hnsw/detail/difference_bound.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cpp/base/lanes.hpp"
#include "cpp/knn/distance.hpp"
#include "tests/support/test_size.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::RandomRows;
using testing::rounds;
using testing::Shape;
using testing::TypedRows;
using testing::value_of_half;

using Numbers = std::vector<double>;

/// Differences as the kernels of kernels/hnsw round them.
Numbers rounded_differences(const Numbers& row, const Numbers& from, float scale) {
    Numbers rounded;
    for (std::size_t i = 0; i < row.size(); ++i) {
        const float difference = static_cast<float>(row[i]) - static_cast<float>(from[i]);
        std::uint16_t bits;
        const Half half = half_near(difference * scale);
        std::memcpy(&bits, &half, sizeof bits);
        rounded.push_back(value_of_half(bits));
    }
    return rounded;
}

/// As tensor cores sum, at their worst: eight products and what is summed so far, each cut below
/// 2^-23 of the largest.
float sum_of_products(const Numbers& a, const Numbers& b) {
    double sum = 0;
    for (std::size_t begin = 0; begin < a.size(); begin += 8) {
        Numbers terms{sum};
        for (std::size_t i = begin; i < std::min(a.size(), begin + 8); ++i)
            terms.push_back(a[i] * b[i]);
        double largest = 0;
        for (const double term : terms) largest = std::max(largest, std::fabs(term));
        if (largest == 0) continue;
        const double unit = std::ldexp(1.0, std::ilogb(largest) - 23);
        sum = 0;
        for (const double term : terms) sum += std::trunc(term / unit) * unit;
        const double last = std::ldexp(1.0, std::ilogb(sum == 0 ? 1 : sum) - 23);
        sum = std::trunc(sum / last) * last;
    }
    return static_cast<float>(sum);
}

/// How many of some pairs the bound decides, which it does as exact distances do.
struct Decided {
    int pairs = 0, decided = 0;
};

Decided decide(const TypedRows& rows, RandomRows& random) {
    const Vectors& all = rows.vectors();
    const auto count = static_cast<std::uint32_t>(all.rows);
    const DifferenceBound bound = bound_of_halves(all.dimensions);
    Distances exact(Metric::euclidean, all, all, Simd::portable);
    Decided decided;
    for (std::uint32_t e = 0; e < count; ++e) {
        std::vector<double> distances(count);
        exact.set_query(e);
        for (std::uint32_t c = 0; c < count; ++c) distances[c] = exact(c);
        const float scale = scale_to_halves(*std::max_element(distances.begin(), distances.end()));
        if (scale == 0) continue;
        std::vector<Numbers> differences;
        for (const Numbers& row : rows.rows())
            differences.push_back(rounded_differences(row, rows.rows()[e], scale));
        for (int pair = 0; pair < 40; ++pair) {
            const auto c = static_cast<std::uint32_t>(random.below(count)),
                       s = static_cast<std::uint32_t>(random.below(count));
            exact.set_query(c);
            const double distance = exact(s);
            const auto square = [&](std::uint32_t a, std::uint32_t b) {
                return static_cast<double>(sum_of_products(differences[a], differences[b]));
            };
            const double found = square(c, c) + square(s, s) - 2 * square(c, s);
            for (const double near : {0.0, 1e-12, 1e-5, 1e-4, 1e-3, 1e-2, 0.1})
                for (const double sign : {-1.0, 1.0}) {
                    const double limit = distance * (1 + sign * near);
                    const SideOfLimit side =
                        bound.side_of(limit * scale, (distances[c] + distances[s]) * scale, found);
                    if (side != SideOfLimit::unknown) {
                        EXPECT_EQ(side == SideOfLimit::below, distance <= limit)
                            << distance << " and " << limit;
                    }
                    if (near != 1e-2 || c == s) continue;
                    ++decided.pairs;
                    decided.decided += side != SideOfLimit::unknown;
                }
        }
    }
    return decided;
}

TEST(HnswDifferenceBound, SaysWhatExactDistancesSay) {
    RandomRows random;
    for (int round = 0; round < rounds(40, 200); ++round) {
        const Shape shape =
            std::array{Shape::gaussian, Shape::grid,     Shape::copies, Shape::near_identical,
                       Shape::clusters, Shape::outliers, Shape::scales}[random.below(7)];
        const std::size_t d = 1 + random.below(random.below(3) == 0 ? 20 : 900);
        const ElementType type =
            std::array{ElementType::float16, ElementType::float32}[random.below(2)];
        const double size = std::array{1.0, 1e-3, 1e-20, 1e-44, 1e28}[random.below(5)];
        auto rows = random.rows(shape, 20, d);
        for (Numbers& row : rows)
            for (double& x : row) x *= size;
        decide(TypedRows(rows, type, d), random);
    }
}

/// Of pairs that are a hundredth from the limit nearly all are decided, however large the numbers
/// are beside the differences.
TEST(HnswDifferenceBound, DecidesNearlyAll) {
    RandomRows random;
    for (const double center : {0.0, 30.0}) {
        auto rows = random.rows(Shape::gaussian, 40, 768);
        for (Numbers& row : rows)
            for (double& x : row) x += center;
        const Decided decided = decide(TypedRows(rows, ElementType::float32, 768), random);
        EXPECT_GT(decided.decided, decided.pairs * 99 / 100);
    }
}

TEST(HnswDifferenceBound, ScalesToTheRangeOfHalves) {
    for (const double farthest :
         {0x1p-100, 1e-20, 0.3, 1.0, 1024.0, 0x1.fffffffffffffp99, 0x1p100}) {
        EXPECT_GE(farthest * scale_to_halves(farthest), 0x1p13);
        EXPECT_LT(farthest * scale_to_halves(farthest), 0x1p14);
    }
    for (const double farthest : {0.0, 1e-31, 1e31, HUGE_VAL, std::nan("")})
        EXPECT_EQ(scale_to_halves(farthest), 0) << farthest;
}

}  // namespace
}  // namespace gputext
