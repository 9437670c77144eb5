#include "cpp/knn/distinct_rows.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <vector>

#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

template <class Row>
void expect_classes(const DistinctRows& distinct, const std::vector<Row>& rows) {
    std::map<Row, std::vector<std::uint32_t>> members;
    std::vector<std::uint32_t> firsts;
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
        auto& of = members[rows[row]];
        if (of.empty()) firsts.push_back(row);
        of.push_back(row);
    }
    ASSERT_TRUE(std::ranges::equal(distinct.firsts(), firsts));
    ASSERT_EQ(distinct.size(), firsts.size());
    ASSERT_EQ(distinct.classes().size(), rows.size());
    for (std::uint32_t c = 0; c < firsts.size(); ++c) {
        const auto& wanted = members[rows[firsts[c]]];
        ASSERT_TRUE(std::ranges::equal(distinct.members(c), wanted));
        for (const std::uint32_t row : wanted) ASSERT_EQ(distinct.classes()[row], c);
    }
}

TEST(DistinctRows, AreThoseOfAPlainComparison) {
    RandomRows random;
    for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::copies, Shape::sparse})
        for (const std::size_t n : {0, 1, 2, 3000})
            for (const std::size_t d : {0, 1, 5, 40})
                for (const bool sparse : {false, true}) {
                    const TypedRows rows(random.rows(shape, n, d), ElementType::float32, d, sparse);
                    Execution execution(3);
                    DistinctRows distinct;
                    ASSERT_TRUE(distinct.set(rows.vectors(), execution).ok());
                    ASSERT_NO_FATAL_FAILURE(expect_classes(distinct, rows.rows()));
                    GatheredRows matrix;
                    ASSERT_TRUE(matrix.set(rows.vectors(), distinct.firsts(), execution).ok());
                    ASSERT_EQ(matrix.vectors().rows, distinct.size());
                    std::vector<double> of_row(d), of_class(d);
                    for (std::uint32_t c = 0; c < distinct.size(); ++c) {
                        const std::uint32_t row = distinct.firsts()[c];
                        const std::size_t stored = rows.vectors().stored(row);
                        ASSERT_EQ(matrix.vectors().stored(c), stored);
                        copy_elements(rows.vectors(), rows.vectors().begin(row), stored,
                                      of_row.data());
                        copy_elements(matrix.vectors(), matrix.vectors().begin(c), stored,
                                      of_class.data());
                        ASSERT_EQ(of_class, of_row);
                    }
                }
}

TEST(DistinctRows, AreThoseOfAPlainComparisonInManyParts) {
    RandomRows random;
    for (const Shape shape : {Shape::gaussian, Shape::grid}) {
        const TypedRows rows(random.rows(shape, 120'000, 2), ElementType::float32, 2);
        for (const unsigned threads : {1, 2, 5}) {
            Execution execution(threads);
            DistinctRows distinct;
            ASSERT_TRUE(distinct.set(rows.vectors(), execution).ok());
            ASSERT_NO_FATAL_FAILURE(expect_classes(distinct, rows.rows()));
        }
    }
}

TEST(DistinctRows, AreComparedAndNotOnlyHashed) {
    // The hash's first word takes in words 0 and 4 of a row: what one does to it the other undoes.
    const auto hashed = [](std::uint64_t word) {
        return std::rotl(word * 0x9e3779b97f4a7c15u, 29);
    };
    std::vector<std::vector<std::uint64_t>> rows;
    for (const std::uint64_t first : {1, 2, 3, 2, 1, 7})
        rows.push_back({first, 0, 0, 0, hashed(first), 0, 0, 0});
    std::vector<std::uint64_t> words;
    for (const auto& row : rows) words.insert(words.end(), row.begin(), row.end());
    const Vectors vectors{ElementType::int32, rows.size(), 16, words.data(), {}, {}};
    Execution execution(2);
    DistinctRows distinct;
    ASSERT_TRUE(distinct.set(vectors, execution).ok());
    expect_classes(distinct, rows);
}

TEST(DistinctRows, AreEstimatedFromASample) {
    Execution execution(2);
    // Among a hundred thousand rows the first `same` are equal, and others in runs of `copies`.
    const auto estimate = [&](std::size_t rows, std::size_t same, std::size_t copies) {
        std::vector<std::int32_t> elements(rows);
        for (std::size_t row = same; row < rows; ++row)
            elements[row] = static_cast<std::int32_t>(1 + row / copies);
        const Vectors vectors{ElementType::int32, rows, 1, elements.data(), {}, {}};
        return *mean_class_size(vectors, execution);
    };
    EXPECT_EQ(estimate(100000, 0, 1), 1);
    EXPECT_EQ(estimate(0, 0, 1), 1);
    EXPECT_EQ(estimate(1, 0, 1), 1);
    EXPECT_DOUBLE_EQ(estimate(2000, 2000, 1), 2000);
    EXPECT_NEAR(estimate(2000, 0, 4), 4, 0.1);
    EXPECT_NEAR(estimate(100000, 100000, 1), 100000, 1);
    EXPECT_NEAR(estimate(100000, 10000, 1), 1000, 300);
    EXPECT_NEAR(estimate(100000, 0, 50), 50, 15);
}

}  // namespace
}  // namespace gputext
