#include "cpp/hnsw/links.hpp"

#include <gtest/gtest.h>

#include "cpp/hnsw/graph.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

// builder_test.cpp holds layers against their definition.

struct Links {
    std::vector<std::uint32_t> rows;
    std::vector<double> distances;

    explicit Links(std::size_t count) : rows(count), distances(count) {}
    HnswLinks view() { return {rows, distances}; }
};

TEST(HnswLinks, AreTheSameInParts) {
    RandomRows random;
    const std::size_t rows = 3000, d = 9;
    const TypedRows values(random.rows(Shape::clusters, rows, d), ElementType::float32, d);
    HnswLinkParameters parameters;
    parameters.candidates = 30;
    parameters.places = 10;
    Execution execution(3);
    const auto wanted = link_layer({parameters, {values.vectors()}, rows}, execution);
    ASSERT_TRUE(wanted.ok());
    Links links(rows * parameters.places), found(rows * parameters.places);
    ASSERT_TRUE(
        link_to_earlier(parameters, {values.vectors()}, {0, rows}, links.view(), execution).ok());
    std::vector<std::uint32_t> neighbors(found.rows.size());
    const std::size_t begins[] = {0, 1, 700, 2900, rows};
    parameters.block_rows = 500;
    // As a device searches that is not told of radii
    const RadiusSearch search = [&](const KnnParameters& wanted_of, std::span<const double>,
                                    const Vectors& queries, const Vectors& items) {
        return knn(wanted_of, queries, items, {}, execution);
    };
    for (std::size_t part = 0; part + 1 < std::size(begins); ++part) {
        const LayerRows some{begins[part], begins[part + 1]};
        const std::size_t first = some.begin * parameters.places,
                          count = some.size() * parameters.places;
        ASSERT_TRUE(link_to_earlier(parameters, {values.vectors()}, some,
                                    {std::span(found.rows).subspan(first, count),
                                     std::span(found.distances).subspan(first, count)},
                                    execution, part % 2 == 0 ? search : RadiusSearch())
                        .ok());
    }
    EXPECT_EQ(found.rows, links.rows);
    EXPECT_EQ(found.distances, links.distances);
    for (std::size_t part = 0; part + 1 < std::size(begins); ++part) {
        const LayerRows some{begins[part], begins[part + 1]};
        ASSERT_TRUE(link_back(parameters, values.vectors(), found.view(), some,
                              std::span(neighbors).subspan(some.begin * parameters.places,
                                                           some.size() * parameters.places),
                              execution)
                        .ok());
    }
    EXPECT_EQ(neighbors, *wanted);
}

TEST(HnswLinks, TellHowManyRowsAreLinked) {
    RandomRows random;
    const std::size_t rows = 1500;
    const TypedRows values(random.rows(Shape::gaussian, rows, 4), ElementType::float32, 4);
    HnswLinkParameters parameters;
    parameters.block_rows = 400;
    Execution execution(2);
    Links links(rows * parameters.places);
    ASSERT_TRUE(
        link_to_earlier(parameters, {values.vectors()}, {0, rows}, links.view(), execution).ok());
    EXPECT_STREQ(execution.phase(), "linking rows");
    EXPECT_EQ(execution.done(), rows);
    EXPECT_EQ(execution.total(), rows);
}

TEST(HnswLinks, StopWhenAsked) {
    RandomRows random;
    const std::size_t rows = 500, places = 6;
    const TypedRows values(random.rows(Shape::gaussian, rows, 4), ElementType::float32, 4);
    HnswLinkParameters parameters;
    parameters.places = places;
    Execution execution(2);
    Links links(rows * places);
    ASSERT_TRUE(
        link_to_earlier(parameters, {values.vectors()}, {0, rows}, links.view(), execution).ok());
    execution.request_stop();
    std::vector<std::uint32_t> neighbors(rows * places);
    EXPECT_EQ(link_back(parameters, values.vectors(), links.view(), {0, rows}, neighbors, execution)
                  .code(),
              ErrorCode::cancelled);
    EXPECT_EQ(
        link_to_earlier(parameters, {values.vectors()}, {0, rows}, links.view(), execution).code(),
        ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
