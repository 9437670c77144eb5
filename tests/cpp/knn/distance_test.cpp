#include "cpp/knn/distance.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "tests/support/plain_knn.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::DoubleRow;
using testing::kAllShapes;
using testing::plain_distance;
using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

constexpr Metric kAllMetrics[] = {Metric::euclidean, Metric::cosine, Metric::inner_product,
                                  Metric::manhattan};

void expect_plain_distance(Metric metric, const TypedRows& a, const TypedRows& b) {
    const double found = distance(metric, a.vectors(), b.vectors());
    const auto wanted = plain_distance(metric, a.rows()[0], b.rows()[0]);
    if (wanted)
        EXPECT_EQ(std::bit_cast<std::uint64_t>(found), std::bit_cast<std::uint64_t>(*wanted));
    else
        EXPECT_TRUE(std::isnan(found));
}

TEST(DistanceOfTwoRows, HasTheBitsOfTheDefinitionForEveryPairOfTypes) {
    RandomRows random;
    for (const std::size_t dimensions : {1, 2, 15, 16, 17, 33, 100})
        for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::near_identical,
                                  Shape::sparse, Shape::clusters, Shape::outliers})
            for (const ElementType type_a :
                 {ElementType::float16, ElementType::float32, ElementType::float64})
                for (const ElementType type_b :
                     {ElementType::float32, ElementType::float64, ElementType::int32})
                    for (const Metric metric : kAllMetrics)
                        expect_plain_distance(
                            metric, {random.rows(shape, 1, dimensions), type_a, dimensions},
                            {random.rows(shape, 1, dimensions), type_b, dimensions});
}

TEST(DistanceOfTwoRows, NeitherOverflowsNorUnderflows) {
    RandomRows random;
    for (const Shape shape : kAllShapes)
        for (int i = 0; i < 50; ++i)
            for (const Metric metric : kAllMetrics)
                expect_plain_distance(metric, {random.rows(shape, 1, 20), ElementType::float64, 20},
                                      {random.rows(shape, 1, 20), ElementType::float64, 20});
}

TEST(DistanceOfTwoRows, IsThatOfDenseRowsForSparseOnes) {
    RandomRows random;
    for (int i = 0; i < 100; ++i) {
        const auto a = random.rows(Shape::sparse, 1, 50), b = random.rows(Shape::sparse, 1, 50);
        for (const Metric metric : kAllMetrics)
            expect_plain_distance(metric, {a, ElementType::float32, 50, true},
                                  {b, ElementType::float32, 50, true});
    }
}

/// Rows of which half of the elements are zeros, and the others from 2^-60 to 2^60.
testing::DoubleRows rows_of_many_magnitudes(std::size_t rows, std::size_t dimensions,
                                            std::mt19937_64& random) {
    testing::DoubleRows made(rows, DoubleRow(dimensions));
    for (DoubleRow& row : made)
        for (double& element : row)
            if (random() % 2 == 0)
                element = std::ldexp(static_cast<double>(random() % 2001) / 1000 - 1,
                                     static_cast<int>(random() % 121) - 60);
    return made;
}

/// Copies of the rows, in turn, of which some elements are a little larger.
testing::DoubleRows rows_near(const testing::DoubleRows& rows, std::size_t count,
                              std::mt19937_64& random) {
    testing::DoubleRows made;
    for (std::size_t i = 0; i < count; ++i) {
        made.push_back(rows[i % rows.size()]);
        for (double& element : made.back())
            if (random() % 4 == 0) element *= 1 + 0x1p-20;
    }
    return made;
}

/// A sum in another order than the distance's must leave out no item that is as far as the limit,
/// not even where the distance is small beside the elements.
TEST(Distances, NoItemIsBeyondItsOwnDistance) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 200; ++round) {
        const std::size_t dimensions = 2 + random() % 60;
        const auto rows = rows_of_many_magnitudes(4, dimensions, random);
        const TypedRows queries(rows, ElementType::float32, dimensions, true);
        const TypedRows items(round % 2 == 0 ? rows_of_many_magnitudes(8, dimensions, random)
                                             : rows_near(rows, 8, random),
                              ElementType::float32, dimensions, true);
        for (const Metric metric : {Metric::euclidean, Metric::manhattan}) {
            Distances distances(metric, queries.vectors(), items.vectors(), best_simd());
            for (std::size_t query = 0; query < 4; ++query) {
                distances.set_query(query);
                for (std::size_t item = 0; item < 8; ++item) {
                    const double own = distances(item);
                    ASSERT_EQ(distances.unless_beyond(own, item), own);
                }
            }
        }
    }
}

TEST(DistanceOfTwoRows, IsNoNumberForTheCosineOfZeros) {
    const TypedRows zeros({DoubleRow(3)}, ElementType::float32, 3);
    const TypedRows ones({DoubleRow(3, 1)}, ElementType::float64, 3);
    EXPECT_TRUE(std::isnan(distance(Metric::cosine, zeros.vectors(), ones.vectors())));
    EXPECT_TRUE(std::isnan(distance(Metric::cosine, ones.vectors(), zeros.vectors())));
}

}  // namespace
}  // namespace gputext
