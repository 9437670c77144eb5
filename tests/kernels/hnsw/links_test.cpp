#include "kernels/hnsw/links.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/support/device_fixture.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

/// The CPU's operator, which its own tests hold against a plain one, gives what is expected.
class HnswLinksOnDevice : public testing::RingTest {
protected:
    HnswLinksOnDevice() { work.bytes = std::size_t{4} << 30; }

    struct Links {
        std::vector<std::uint32_t> rows;
        std::vector<double> distances;

        explicit Links(std::size_t count) : rows(count), distances(count) {}
        HnswLinks view() { return {rows, distances}; }
    };

    /// In parts that end with these rows.
    void expect_same(const HnswLinkParameters& parameters, const TypedRows& values,
                     const std::vector<std::size_t>& ends, const Vectors& centroids = {}) {
        const LayerValues all{values.vectors(), centroids};
        const std::size_t rows = all.rows.rows, places = parameters.places;
        Execution execution(8);
        ASSERT_TRUE(gpu::has_kernels_for(parameters, all));
        Links wanted(rows * places), found(rows * places);
        ASSERT_TRUE(link_to_earlier(parameters, all, {0, rows}, wanted.view(), execution).ok());
        std::vector<std::uint32_t> neighbors(rows * places);
        ASSERT_TRUE(
            gputext::link_back(parameters, all.rows, wanted.view(), {0, rows}, neighbors, execution)
                .ok());
        std::vector<std::uint32_t> back(rows * places);
        std::size_t begin = 0;
        for (const std::size_t end : ends) {
            const LayerRows part{begin, end};
            const std::size_t first = begin * places, count = part.size() * places;
            const Status status =
                gpu::link_to_earlier(parameters, all, part,
                                     {std::span(found.rows).subspan(first, count),
                                      std::span(found.distances).subspan(first, count)},
                                     work, ring(), execution);
            ASSERT_TRUE(status.ok()) << status.message();
            begin = end;
        }
        ASSERT_EQ(begin, rows);
        EXPECT_EQ(found.rows, wanted.rows);
        EXPECT_EQ(found.distances, wanted.distances);
        begin = 0;
        for (const std::size_t end : ends) {
            const LayerRows part{begin, end};
            const Status status =
                gpu::link_back(parameters, all.rows, found.view(), part,
                               std::span(back).subspan(begin * places, part.size() * places), work,
                               ring(), execution);
            ASSERT_TRUE(status.ok()) << status.message();
            begin = end;
        }
        EXPECT_EQ(back, neighbors);
        back.assign(rows * places, 0);
        const Status status = gpu::link_layer(parameters, all, back, work, ring(), execution);
        ASSERT_TRUE(status.ok()) << status.message();
        EXPECT_EQ(back, neighbors);
    }

    RandomRows random_;
};

TEST_F(HnswLinksOnDevice, EqualTheCpus) {
    const auto n = static_cast<std::size_t>(testing::rounds(3000));
    for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::copies, Shape::clusters,
                              Shape::near_identical, Shape::outliers})
        for (const std::size_t d : {1, 16, 41, 200})
            for (const ElementType type : {ElementType::float16, ElementType::float32})
                for (const Metric metric :
                     {Metric::euclidean, Metric::inner_product, Metric::manhattan}) {
                    SCOPED_TRACE("shape " + std::to_string(static_cast<int>(shape)) + ", d " +
                                 std::to_string(d) + ", type " +
                                 std::to_string(static_cast<int>(type)) + ", metric " +
                                 std::to_string(static_cast<int>(metric)));
                    const TypedRows values(random_.rows(shape, n, d), type, d);
                    ASSERT_NO_FATAL_FAILURE(expect_same(
                        {.metric = metric, .candidates = 50, .places = 12}, values, {n / 3, n}));
                }
}

/// Rows beyond those that half precision is used for, tiles of them, lists of both lengths.
TEST_F(HnswLinksOnDevice, OfManyRowsEqualTheCpus) {
    const auto n = static_cast<std::size_t>(testing::rounds(40000));
    for (const Shape shape : {Shape::gaussian, Shape::clusters})
        for (const std::size_t d : {8, 96})
            for (const std::size_t candidates : {100, 200})
                for (const Metric metric : {Metric::euclidean, Metric::inner_product}) {
                    const TypedRows values(random_.rows(shape, n, d), ElementType::float32, d);
                    ASSERT_NO_FATAL_FAILURE(
                        expect_same({.metric = metric, .candidates = candidates, .places = 32},
                                    values, {n / 2, n}));
                }
}

/// Of which most probe clusters: lists of both lengths, lists that overflow and lists of rows whose
/// scores do not tell which is nearer, rows that half precision does not hold, tiles smaller than
/// blocks.
TEST_F(HnswLinksOnDevice, OfRowsThatProbeEqualTheCpus) {
    const auto n = static_cast<std::size_t>(testing::rounds(14000));
    for (const Shape shape :
         {Shape::gaussian, Shape::clusters, Shape::copies, Shape::near_identical, Shape::outliers})
        for (const std::size_t d : {70, 192})
            for (const std::size_t candidates : {60, 200}) {
                SCOPED_TRACE("shape " + std::to_string(static_cast<int>(shape)) + ", d " +
                             std::to_string(d) + ", candidates " + std::to_string(candidates));
                const ElementType type = d == 70 ? ElementType::float16 : ElementType::float32;
                const TypedRows values(random_.rows(shape, n, d), type, d);
                const TypedRows centroids(random_.rows(shape, d == 70 ? 200 : 512, d),
                                          ElementType::float32, d);
                const HnswLinkParameters parameters{.candidates = candidates,
                                                    .places = 16,
                                                    .exact_rows = 3000,
                                                    .probing_rows = 4500};
                const LayerValues all{values.vectors(), centroids.vectors()};
                work.bytes = candidates == 60 ? std::size_t{4} << 30
                                              : gpu::least_bytes_to_link_layer(parameters, all) +
                                                    (std::size_t{300} << 20);
                ASSERT_NO_FATAL_FAILURE(
                    expect_same(parameters, values, {n / 2, n}, centroids.vectors()));
            }
}

/// All rows are candidates, and few ones; more places than candidates.
TEST_F(HnswLinksOnDevice, OfFewRowsEqualTheCpus) {
    for (const std::size_t n : {1, 2, 33, 300})
        for (const std::size_t candidates : {1, 40, 1000}) {
            const TypedRows values(random_.rows(Shape::gaussian, n, 7), ElementType::float32, 7);
            ASSERT_NO_FATAL_FAILURE(
                expect_same({.candidates = candidates, .places = 32}, values, {n}));
        }
}

/// Of a row that all others link to, more is known than a block has threads.
TEST_F(HnswLinksOnDevice, OfAHubEqualTheCpus) {
    for (const std::size_t d : {30, 90}) {
        auto rows = random_.rows(Shape::gaussian, 3000, d);
        rows[0].assign(d, 0);
        const TypedRows values(rows, ElementType::float32, d);
        ASSERT_NO_FATAL_FAILURE(expect_same({.candidates = 20, .places = 4}, values, {3000}));
    }
}

/// Where candidates are compared by differences in half precision: as many rows as are chosen then,
/// and one more; numbers of dimensions that are no whole vectors; floats whose squares over- and
/// underflow.
TEST_F(HnswLinksOnDevice, OfManyDimensionsEqualTheCpus) {
    const auto n = static_cast<std::size_t>(testing::rounds(600));
    std::size_t test = 0;
    for (const std::size_t d : {64, 77, 768, 1001, 1536})
        for (const std::size_t places : {1, 32, 64, 65}) {
            const double size = std::array{1.0, 1e-3, 1e-25, 1e-42, 1e30, 1e33}[test++ % 6];
            const ElementType type = size == 1e-3 ? ElementType::float16 : ElementType::float32;
            const Shape shape = std::array{Shape::gaussian, Shape::clusters, Shape::copies,
                                           Shape::near_identical}[random_.below(4)];
            SCOPED_TRACE("d " + std::to_string(d) + ", places " + std::to_string(places) +
                         ", size " + std::to_string(size) + ", shape " +
                         std::to_string(static_cast<int>(shape)));
            auto rows = random_.rows(shape, n, d);
            for (auto& row : rows)
                for (double& x : row) x *= size;
            const TypedRows values(rows, type, d);
            ASSERT_NO_FATAL_FAILURE(
                expect_same({.candidates = 150, .places = places}, values, {n}));
        }
}

/// Distances that are the same, or nearly.
TEST_F(HnswLinksOnDevice, OfRowsAsFarApartEqualTheCpus) {
    constexpr std::size_t d = 100, n = 600;
    for (const double size : {1.0, 1e-6, 1e12}) {
        std::vector<std::vector<double>> rows(n, std::vector<double>(d, 1000 * size));
        for (std::size_t row = 0; row < n; ++row) {
            rows[row][row % d] += size;
            rows[row][d - 1] += 1e-3 * size * static_cast<double>(random_.below(8));
        }
        const TypedRows values(rows, ElementType::float32, d);
        ASSERT_NO_FATAL_FAILURE(expect_same({.candidates = 200, .places = 32}, values, {n}));
    }
}

TEST_F(HnswLinksOnDevice, DoNotDependOnMemory) {
    const std::size_t n = 12000;
    const TypedRows values(random_.rows(Shape::clusters, n, 64), ElementType::float32, 64);
    const HnswLinkParameters parameters{.candidates = 60, .places = 16};
    const std::size_t least = gpu::least_bytes_to_link(parameters, {values.vectors()});
    const std::size_t least_back = gpu::least_bytes_to_link_back(parameters, values.vectors());
    const std::size_t least_layer = gpu::least_bytes_to_link_layer(parameters, {values.vectors()});
    for (const std::size_t more : {std::size_t{0}, std::size_t{10} << 20, std::size_t{100} << 20}) {
        work.bytes = std::max({least, least_back, least_layer}) + more;
        ASSERT_NO_FATAL_FAILURE(expect_same(parameters, values, {n}));
    }
    Execution execution(2);
    Links links(n * parameters.places);
    work.bytes = least - 1;
    EXPECT_EQ(gpu::link_to_earlier(parameters, {values.vectors()}, {0, n}, links.view(), work,
                                   ring(), execution)
                  .code(),
              ErrorCode::out_of_memory);
    work.bytes = least_layer - 1;
    EXPECT_EQ(
        gpu::link_layer(parameters, {values.vectors()}, links.rows, work, ring(), execution).code(),
        ErrorCode::out_of_memory);
    work.bytes = least_back - 1;
    EXPECT_EQ(gpu::link_back(parameters, values.vectors(), links.view(), {0, n}, links.rows, work,
                             ring(), execution)
                  .code(),
              ErrorCode::out_of_memory);
}

TEST_F(HnswLinksOnDevice, StopWhenAsked) {
    const std::size_t n = 500;
    const TypedRows values(random_.rows(Shape::gaussian, n, 8), ElementType::float32, 8);
    const HnswLinkParameters parameters{.places = 8};
    Execution execution(2);
    Links links(n * parameters.places);
    execution.request_stop();
    EXPECT_EQ(gpu::link_to_earlier(parameters, {values.vectors()}, {0, n}, links.view(), work,
                                   ring(), execution)
                  .code(),
              ErrorCode::cancelled);
}

TEST(HnswLinksKernels, AreForSomeRowsAndMetrics) {
    const std::vector<double> elements{1, 2};
    const Vectors doubles{ElementType::float64, 2, 1, elements.data(), {}, {}};
    EXPECT_FALSE(gpu::has_kernels_for({}, {doubles}));
    Vectors floats = doubles;
    floats.type = ElementType::float32;
    EXPECT_TRUE(gpu::has_kernels_for({}, {floats}));
    EXPECT_FALSE(gpu::has_kernels_for({.metric = Metric::cosine}, {floats}));
    EXPECT_FALSE(gpu::has_kernels_for({.candidates = 1025}, {floats}));
    EXPECT_FALSE(gpu::has_kernels_for({.places = 1025}, {floats}));
    floats.dimensions = 100;
    const LayerValues probing{floats, floats};
    EXPECT_TRUE(gpu::has_kernels_for({.exact_rows = 1}, probing));
    EXPECT_FALSE(gpu::has_kernels_for({.metric = Metric::manhattan, .exact_rows = 1}, probing));
    EXPECT_TRUE(gpu::has_kernels_for({.metric = Metric::manhattan, .exact_rows = 2}, probing));
    floats.dimensions = 64;
    EXPECT_FALSE(gpu::has_kernels_for({.exact_rows = 1}, {floats, floats}));
    floats.dimensions = 4097;
    EXPECT_FALSE(gpu::has_kernels_for({}, {floats}));
}

}  // namespace
}  // namespace gputext
