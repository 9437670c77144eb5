#include "cpp/hnsw/detail/chosen_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "tests/support/on_each_simd.hpp"
#include "tests/support/test_size.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::kAllShapes;
using testing::name_of_simd;
using testing::OnEachSimd;
using testing::RandomRows;
using testing::rounds;
using testing::Shape;
using testing::TypedRows;

class ChosenRowsOnEach : public OnEachSimd {};
INSTANTIATE_TEST_SUITE_P(Simd, ChosenRowsOnEach,
                         ::testing::Values(Simd::portable, Simd::avx2, Simd::avx512, Simd::bfloat16,
                                           Simd::amx),
                         name_of_simd);

/// Chooses some of the rows for each of them, and compares what is said of all others with exact
/// distances.
void choose_for_each(const TypedRows& rows, Metric metric, Simd simd, RandomRows& random) {
    const auto count = static_cast<std::uint32_t>(rows.vectors().rows);
    Distances exact(metric, rows.vectors(), rows.vectors(), Simd::portable);
    ChosenRows chosen(metric, rows.vectors(), simd);
    for (std::uint32_t e = 0; e < count; ++e) {
        chosen.begin(e);
        std::vector<std::uint32_t> all;
        for (std::uint32_t c = 0; c < count; ++c) {
            exact.set_query(e);
            const double distance = exact(c);
            exact.set_query(c);
            const double limit = distance * std::array{1.0, 0.9, 1.1}[random.below(3)];
            const bool has_nearer = std::any_of(all.begin(), all.end(),
                                                [&](std::uint32_t s) { return exact(s) <= limit; });
            ASSERT_EQ(chosen.has_nearer(c, distance, limit), has_nearer)
                << "rows " << e << " and " << c << " of " << rows.vectors().dimensions
                << " dimensions";
            if (c == e || random.below(4) > 0) continue;
            chosen.choose();
            all.push_back(c);
        }
    }
}

TEST_P(ChosenRowsOnEach, SaysWhatExactDistancesSay) {
    RandomRows random;
    for (int round = 0; round < rounds(60, 300); ++round) {
        const Shape shape = kAllShapes[random.below(std::size(kAllShapes))];
        const std::size_t d = 1 + random.below(random.below(3) == 0 ? 20 : 900);
        const ElementType type = std::array{ElementType::float16, ElementType::float32,
                                            ElementType::float64}[random.below(3)];
        if (type != ElementType::float64 &&
            (shape == Shape::tiny || shape == Shape::huge || shape == Shape::mixed))
            continue;
        const TypedRows rows(random.rows(shape, 30, d), type, d);
        choose_for_each(rows,
                        std::array{Metric::euclidean, Metric::euclidean, Metric::manhattan,
                                   Metric::inner_product}[random.below(4)],
                        GetParam(), random);
    }
}

// Distances of which many are the same, or nearly, and so on both sides of what rounded numbers
// tell
TEST_P(ChosenRowsOnEach, TellsDistancesApartThatAreNearlyTheSame) {
    RandomRows random;
    constexpr std::size_t d = 100, count = 40;
    for (const double size : {1.0, 1e-3, 1e-2, 1e-6, 1e12}) {
        std::vector<std::vector<double>> numbers(count, std::vector<double>(d, 1000 * size));
        for (std::size_t row = 0; row < count; ++row) {
            numbers[row][row] += size;
            numbers[row][d - 1] += 1e-3 * size * static_cast<double>(random.below(8));
        }
        choose_for_each(TypedRows(numbers, ElementType::float32, d), Metric::euclidean, GetParam(),
                        random);
    }
}

// Where sums of floats overflow, and where they are below the normal numbers
TEST_P(ChosenRowsOnEach, CopesWithTheLargestAndTheSmallestFloats) {
    RandomRows random;
    constexpr std::size_t d = 70;
    for (const double size : {1e38, 3e38, 1e20, 1e-12, 1e-20, 1e-38, 1e-45}) {
        std::vector<std::vector<double>> numbers(12, std::vector<double>(d, 0));
        for (std::size_t row = 0; row < numbers.size(); ++row)
            for (std::size_t i = 0; i < d; ++i)
                numbers[row][i] = size * (static_cast<double>(random.below(3)) - 1);
        choose_for_each(TypedRows(numbers, ElementType::float32, d), Metric::euclidean, GetParam(),
                        random);
    }
}

}  // namespace
}  // namespace gputext
