#include "cpp/hnsw/detail/nearness.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/on_each_simd.hpp"
#include "tests/support/test_size.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::kAllShapes;
using testing::kEachSimd;
using testing::name_of_simd;
using testing::OnEachSimd;
using testing::RandomRows;
using testing::rounds;
using testing::Shape;
using testing::TypedRows;

class NearnessOnEach : public OnEachSimd {};
INSTANTIATE_TEST_SUITE_P(Simd, NearnessOnEach, kEachSimd, name_of_simd);

// At the distance itself, at its neighbors among the doubles, and around what floats can tell
TEST_P(NearnessOnEach, SaysWhatExactDistancesSay) {
    RandomRows random;
    for (int round = 0; round < rounds(60, 300); ++round) {
        const Shape shape = kAllShapes[random.below(std::size(kAllShapes))];
        const std::size_t d = 1 + random.below(random.below(2) == 0 ? 20 : 900);
        const ElementType type = std::array{ElementType::float16, ElementType::float32,
                                            ElementType::float64}[random.below(3)];
        if (type != ElementType::float64 &&
            (shape == Shape::tiny || shape == Shape::huge || shape == Shape::mixed))
            continue;
        const TypedRows rows(random.rows(shape, 30, d), type, d);
        const Metric metric = std::array{Metric::euclidean, Metric::manhattan,
                                         Metric::inner_product}[random.below(3)];
        Distances exact(metric, rows.vectors(), rows.vectors(), Simd::portable);
        Nearness nearness(metric, rows.vectors(), GetParam());
        for (std::uint32_t a = 0; a < 30; ++a) {
            nearness.set(a);
            exact.set_query(a);
            for (std::uint32_t b = 0; b < 30; ++b) {
                const double distance = exact(b);
                for (const double factor : {1.0, 1 + 1e-6, 1 - 1e-6, 1 + 1e-4, 1 - 1e-4, 2.0, 0.5})
                    for (const double limit :
                         {distance * factor, std::nextafter(distance * factor, -1e308),
                          std::nextafter(distance * factor, 1e308)})
                        ASSERT_EQ(nearness.at_most(limit, b), distance <= limit)
                            << "shape " << static_cast<int>(shape) << ", d " << d << ", rows " << a
                            << " and " << b;
            }
        }
    }
}

// Where sums of floats overflow, and where they are below the normal numbers
TEST_P(NearnessOnEach, CopesWithTheLargestAndTheSmallestFloats) {
    // The square of 3e-23 is rounded up to the least float.
    for (const double size : {1e38, 3e38, 1e20, 1e-20, 3e-23, 1e-38, 1e-45}) {
        const TypedRows rows({{size, 0, size}, {-size, 0, 0}, {0, size, 0}, {0, 0, 0}},
                             ElementType::float32, 3);
        Distances exact(Metric::euclidean, rows.vectors(), rows.vectors(), Simd::portable);
        Nearness nearness(Metric::euclidean, rows.vectors(), GetParam());
        for (std::uint32_t a = 0; a < 4; ++a)
            for (std::uint32_t b = 0; b < 4; ++b) {
                exact.set_query(a);
                nearness.set(a);
                for (const double limit : {exact(b), exact(b) * 0.9, exact(b) * 1.1, 0.0})
                    EXPECT_EQ(nearness.at_most(limit, b), exact(b) <= limit) << size;
            }
    }
}

}  // namespace
}  // namespace gputext
