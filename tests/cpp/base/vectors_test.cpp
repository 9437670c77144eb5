#include "cpp/base/vectors.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "cpp/knn/distance.hpp"
#include "cpp/knn/distinct_rows.hpp"
#include "tests/support/on_each_simd.hpp"
#include "tests/support/plain_knn.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::DoubleRow;
using testing::DoubleRows;
using testing::kAllShapes;
using testing::kEachSimd;
using testing::name_of_simd;
using testing::OnEachSimd;
using testing::plain_distance;
using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

constexpr Metric kAllMetrics[] = {Metric::euclidean, Metric::cosine, Metric::inner_product,
                                  Metric::manhattan};
constexpr ElementType kAllTypes[] = {ElementType::float16, ElementType::float32,
                                     ElementType::float64, ElementType::int32};

std::uint64_t bits(double value) {
    return std::bit_cast<std::uint64_t>(value);
}

TEST(Vectors, HalvesBecomeTheDoublesThatTheyAre) {
    std::vector<std::uint16_t> halves;
    for (std::uint32_t h = 0; h < 65536; ++h)
        if ((h & 0x7c00) != 0x7c00) halves.push_back(static_cast<std::uint16_t>(h));
    const Vectors vectors{ElementType::float16, halves.size(), 1, halves.data(), {}, {}};
    std::vector<double> values(halves.size());
    copy_elements(vectors, 0, halves.size(), values.data());
    for (std::size_t i = 0; i < halves.size(); ++i)
        ASSERT_EQ(bits(values[i]), bits(testing::value_of_half(halves[i]))) << halves[i];
}

TEST(Vectors, LargestMagnitudeIsFound) {
    Execution execution(3);
    const DoubleRows rows{{1, -3, 2}, {0, 2, -7}, {5, 5, 5}};
    for (const ElementType type : kAllTypes)
        EXPECT_EQ(*largest_magnitude(TypedRows(rows, type, 3).vectors(), "item", execution), 7);
    EXPECT_EQ(*largest_magnitude(TypedRows(rows, ElementType::float32, 3, true).vectors(), "item",
                                 execution),
              7);
    const std::int32_t least[] = {std::numeric_limits<std::int32_t>::min()};
    EXPECT_EQ(*largest_magnitude({ElementType::int32, 1, 1, least, {}, {}}, "item", execution),
              2147483648.0);
    EXPECT_EQ(*largest_magnitude({ElementType::int32, 0, 5, nullptr, {}, {}}, "item", execution),
              0);
}

TEST(Vectors, TheFirstRowThatIsNotFiniteIsNamed) {
    Execution execution(3);
    constexpr std::size_t rows = 4000, d = 37;
    const auto message = [&](const Vectors& vectors) {
        const auto result = largest_magnitude(vectors, "item", execution);
        EXPECT_EQ(result.status().code(), ErrorCode::invalid_argument);
        return result.status().message();
    };
    const std::string wanted = "item 2345 has an element that is not a finite number";
    for (const double bad : {std::nan(""), -std::numeric_limits<double>::infinity()}) {
        std::vector<double> doubles(rows * d, 1);
        std::vector<float> floats(rows * d, 1);
        doubles[2345 * d + 36] = doubles[3000 * d] = bad;
        floats[2345 * d] = floats[3999 * d] = static_cast<float>(bad);
        EXPECT_EQ(message({ElementType::float64, rows, d, doubles.data(), {}, {}}), wanted);
        EXPECT_EQ(message({ElementType::float32, rows, d, floats.data(), {}, {}}), wanted);
    }
    std::vector<std::uint16_t> halves(rows * d, 0x3c00);
    halves[2345 * d + 17] = 0xfc00;
    EXPECT_EQ(message({ElementType::float16, rows, d, halves.data(), {}, {}}), wanted);
}

TEST(KnownElements, AreLookedAtOnce) {
    Execution execution(2);
    std::vector<float> elements{1, -3, 2, 0, 2, -7, 8, 9, 10};
    KnownElements known;
    Vectors vectors{ElementType::float32, 2, 3, elements.data(), {}, {}};
    vectors.known = &known;
    EXPECT_EQ(*largest_magnitude(vectors, "item", execution), 7);
    elements[0] = 100;  // which nobody may do
    EXPECT_EQ(*largest_magnitude(vectors, "item", execution), 7);
    // Also of some of the rows.
    Vectors part = vectors;
    part.rows = 1;
    EXPECT_EQ(*largest_magnitude(part, "item", execution), 7);
    part.elements = elements.data() + 3;
    EXPECT_EQ(*largest_magnitude(part, "item", execution), 7);
    Vectors others[5] = {vectors, vectors, vectors, vectors, vectors};
    others[0].dimensions = 2;
    others[1].elements = elements.data() + 1;  // between two rows
    others[1].rows = 1;
    others[2].known = nullptr;
    others[3].elements = elements.data() + 3;  // one row too far
    others[4].type = ElementType::int32;
    const double largest[] = {100, 3, 100, 10, std::bit_cast<std::int32_t>(100.0f)};
    for (int i = 0; i < 5; ++i) {
        KnownElements again;
        again.set_largest(vectors, 7);
        if (others[i].known != nullptr) others[i].known = &again;
        EXPECT_EQ(*largest_magnitude(others[i], "item", execution), largest[i]) << i;
    }
    elements[0] = std::numeric_limits<float>::infinity();
    KnownElements nothing;
    vectors.known = &nothing;
    EXPECT_FALSE(largest_magnitude(vectors, "item", execution).ok());
    EXPECT_FALSE(nothing.largest(vectors).has_value());
}

TEST(Vectors, SparseRowsAreChecked) {
    Execution execution(1);
    const float elements[] = {1, 2, 3, 4};
    const auto check = [&](std::vector<std::uint64_t> begins, std::vector<std::uint32_t> columns) {
        const Vectors vectors{ElementType::float32, 2, 10, elements, begins, columns};
        return largest_magnitude(vectors, "query", execution).status();
    };
    EXPECT_TRUE(check({0, 2, 4}, {0, 9, 3, 4}).ok());
    EXPECT_TRUE(check({0, 0, 4}, {0, 3, 4, 9}).ok());
    for (const auto& columns :
         std::vector<std::vector<std::uint32_t>>{{0, 9, 4, 3}, {0, 9, 3, 3}, {0, 9, 3, 10}})
        EXPECT_EQ(check({0, 2, 4}, columns).message(),
                  "query 1 has columns out of order or beyond its dimensions");
    for (const auto& begins :
         std::vector<std::vector<std::uint64_t>>{{0, 2}, {0, 2, 5}, {0, 3, 2}, {3, 2, 4}})
        EXPECT_EQ(check(begins, {0, 9, 3, 4}).code(), ErrorCode::invalid_argument);
}

TEST(Vectors, SparseRowsAreOfFloatOrInt) {
    Execution execution(1);
    const std::int32_t elements[] = {1, -7, 3, 4};
    const std::uint64_t begins[] = {0, 2, 4};
    const std::uint32_t columns[] = {0, 9, 3, 4};
    const Vectors counts{ElementType::int32, 2, 10, elements, begins, columns};
    EXPECT_EQ(*largest_magnitude(counts, "item", execution), 7);
    EXPECT_EQ(check_comparable(counts, counts).message(),
              "sparse vectors have elements of type float32");
    const Vectors halves{ElementType::float16, 2, 10, elements, begins, columns};
    EXPECT_EQ(largest_magnitude(halves, "item", execution).status().message(),
              "sparse vectors have elements of type float32 or int32");
}

TEST(DistinctRows, AreThoseOfEqualBytes) {
    Execution execution(2);
    RandomRows random;
    for (const std::size_t d : {1, 3, 8, 50}) {
        for (const bool sparse : {false, true}) {
            const auto rows = random.rows(d < 8 ? Shape::grid : Shape::copies, 300, d);
            const TypedRows typed(rows, ElementType::float32, d, sparse);
            DistinctRows distinct;
            ASSERT_TRUE(distinct.set(typed.vectors(), execution).ok());
            std::size_t members = 0;
            for (std::uint32_t i = 0; i < rows.size(); ++i) {
                const auto first = std::find(rows.begin(), rows.end(), rows[i]) - rows.begin();
                ASSERT_EQ(distinct.firsts()[distinct.classes()[i]], first);
            }
            for (std::size_t c = 0; c < distinct.size(); ++c) {
                const auto of = distinct.members(c);
                members += of.size();
                ASSERT_EQ(of[0], distinct.firsts()[c]);
                ASSERT_TRUE(std::is_sorted(of.begin(), of.end()));
                ASSERT_TRUE(c == 0 || distinct.firsts()[c - 1] < of[0]);
            }
            ASSERT_EQ(members, rows.size());
        }
    }
}

class DistancesOnEach : public OnEachSimd {
protected:
    void expect_defined_distances(Metric metric, const TypedRows& queries, const TypedRows& items) {
        Distances distances(metric, queries.vectors(), items.vectors(), GetParam());
        for (std::size_t q = 0; q < queries.rows().size(); ++q) {
            distances.set_query(q);
            for (std::size_t i = 0; i < items.rows().size(); ++i) {
                const auto wanted = plain_distance(metric, queries.rows()[q], items.rows()[i]);
                const double distance = distances(i);
                if (!wanted) {
                    ASSERT_TRUE(std::isnan(distance));
                    continue;
                }
                ASSERT_EQ(bits(distance), bits(*wanted)) << q << ", " << i << ": " << *wanted;
                ASSERT_EQ(bits(distances.unless_beyond(*wanted, i)), bits(*wanted));
                if (metric == Metric::cosine) {
                    ASSERT_EQ(1 - distances.similarity(i), *wanted);
                }
            }
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Simd, DistancesOnEach, kEachSimd, name_of_simd);

TEST_P(DistancesOnEach, HaveTheDefinedBits) {
    RandomRows random;
    for (const Shape shape : kAllShapes)
        for (const std::size_t d : {1, 2, 15, 16, 17, 41, 100})
            for (const ElementType type : kAllTypes) {
                const bool extreme =
                    shape == Shape::tiny || shape == Shape::huge || shape == Shape::mixed;
                if (extreme && type != ElementType::float64) continue;
                const TypedRows queries(random.rows(shape, 4, d), type, d);
                const TypedRows items(random.rows(shape, 7, d), type, d);
                for (const Metric metric : kAllMetrics)
                    expect_defined_distances(metric, queries, items);
            }
}

TEST_P(DistancesOnEach, DoNotDependOnHowRowsAreStored) {
    RandomRows random;
    for (const std::size_t d : {1, 16, 40, 300}) {
        const auto rows = random.rows(Shape::sparse, 20, d);
        const TypedRows sparse(rows, ElementType::float32, d, true);
        const TypedRows singles(rows, ElementType::float32, d);
        const TypedRows doubles(singles.rows(), ElementType::float64, d);
        for (const Metric metric : kAllMetrics) {
            expect_defined_distances(metric, sparse, sparse);
            expect_defined_distances(metric, singles, doubles);
            expect_defined_distances(metric, doubles, singles);
        }
    }
}

TEST_P(DistancesOnEach, AreZeroToItself) {
    RandomRows random;
    for (const Shape shape : kAllShapes) {
        const TypedRows rows(random.rows(shape, 20, 33), ElementType::float64, 33);
        for (const Metric metric : {Metric::euclidean, Metric::cosine, Metric::manhattan}) {
            Distances distances(metric, rows.vectors(), rows.vectors(), GetParam());
            for (std::size_t i = 0; i < 20; ++i) {
                distances.set_query(i);
                const double distance = distances(i);
                if (metric == Metric::cosine && std::isnan(distance)) continue;
                ASSERT_EQ(distance, 0);
            }
        }
    }
}

TEST_P(DistancesOnEach, NeitherOverflowNorUnderflowOnTheWay) {
    const double most = std::numeric_limits<double>::max();
    const TypedRows a({{3e300, 0}, {most, most}, {3e-300, 0}, {-most, 1}}, ElementType::float64, 2);
    const TypedRows b({{0, 4e300}, {most, -most}, {0, 4e-300}, {most, 1}}, ElementType::float64, 2);
    const auto distance = [&](Metric metric, std::size_t row) {
        Distances distances(metric, a.vectors(), b.vectors(), GetParam());
        distances.set_query(row);
        return distances(row);
    };
    EXPECT_DOUBLE_EQ(distance(Metric::euclidean, 0), 5e300);
    EXPECT_DOUBLE_EQ(distance(Metric::euclidean, 2), 5e-300);
    EXPECT_EQ(distance(Metric::euclidean, 1), std::numeric_limits<double>::infinity());
    EXPECT_EQ(distance(Metric::manhattan, 3), std::numeric_limits<double>::infinity());
    EXPECT_EQ(distance(Metric::inner_product, 1), 0);
    EXPECT_EQ(distance(Metric::inner_product, 3), std::numeric_limits<double>::infinity());
    EXPECT_EQ(distance(Metric::cosine, 1), 1);
    EXPECT_EQ(distance(Metric::cosine, 2), 1);
    EXPECT_EQ(distance(Metric::cosine, 3), 2);
}

TEST(FewerColumns, KeepDistancesToTheBit) {
    RandomRows random;
    // Columns far apart: a dense row of them would be gigabytes.
    std::vector<std::uint32_t> columns;
    while (columns.size() < 60)
        columns.push_back(static_cast<std::uint32_t>(random.below(1u << 31)));
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    const auto rows = random.rows(Shape::sparse, 12, columns.size());
    std::vector<std::uint64_t> begins{0};
    std::vector<std::uint32_t> used;
    std::vector<float> elements;
    for (const DoubleRow& row : rows) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (row[i] == 0) continue;
            used.push_back(columns[i]);
            elements.push_back(static_cast<float>(row[i]));
        }
        begins.push_back(used.size());
    }
    const Vectors wide{ElementType::float32, rows.size(), std::size_t{1} << 31,
                       elements.data(),      begins,      used};
    FewerColumns fewer;
    ASSERT_TRUE(fewer.set(wide, wide, {}).ok());
    EXPECT_LE(fewer.items().dimensions, columns.size() * 16);
    // The definition, on as many partial sums as columns have remainders.
    for (std::size_t i = 0; i < rows.size(); ++i) {
        std::array<double, 16> partial{};
        for (std::size_t at = begins[i]; at < begins[i + 1]; ++at)
            partial[used[at] % 16] += double{elements[at]} * elements[at];
        const double square = testing::plain_sum(16, [&](auto j) { return partial[j]; });
        Distances distances(Metric::inner_product, fewer.queries(), fewer.items(), Simd::portable);
        distances.set_query(i);
        EXPECT_EQ(bits(distances(i)), bits(0 - square));
    }
}

}  // namespace
}  // namespace gputext
