#include "kernels/knn/detail/fp16_rows.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/knn/detail/fp16_filter.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::DoubleRow;
using testing::DoubleRows;
using testing::kAllShapes;
using testing::plain_distance;
using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

constexpr std::uint32_t kRows = 48;
/// Each item stands sixteen times, so that the largest score of a group of the filter is that of
/// one item: of 64 rows, number r belongs to group r % 8 / 2.
constexpr std::uint32_t kCopies = 16;

/// The scores of the filter in half precision are bounds of the t that kernels/knn/detail/
/// fp16_rows.hpp defines.
class Fp16SpaceOnDevice : public testing::DeviceTest {
protected:
    void SetUp() override {
        DeviceTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        ASSERT_TRUE(device_.look().ok());
        on_device_ = std::make_unique<Buffers>();
    }

    void TearDown() override {
        on_device_.reset();
        DeviceTest::TearDown();
    }

    template <class T>
    std::vector<T> download(const DeviceBuffer<T>& from) {
        std::vector<T> to(from.size());
        EXPECT_EQ(cudaMemcpyAsync(to.data(), from.data(), to.size() * sizeof(T),
                                  cudaMemcpyDeviceToHost, stream()),
                  cudaSuccess);
        EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
        return to;
    }

    template <class T>
    void allocate(DeviceBuffer<T>& buffer, std::size_t size) {
        ASSERT_TRUE(buffer.allocate(size, stream()).ok());
    }

    void upload(DeviceBuffer<std::uint8_t>& buffer, const Vectors& rows) {
        const std::size_t bytes = rows.rows * rows.dimensions * element_size(rows.type);
        ASSERT_TRUE(
            buffer.upload({static_cast<const std::uint8_t*>(rows.elements), bytes}, stream()).ok());
    }

    void check(Metric metric, ElementType type, const DoubleRows& given) {
        const std::size_t d = given[0].size();
        const TypedRows queries(given, type, d);
        DoubleRows copies(kRows * kCopies);
        for (std::uint32_t r = 0; r < copies.size(); ++r) copies[r] = given[item_of(r)];
        const TypedRows items(copies, type, d);
        Execution execution(1);
        const auto largest = largest_magnitude(queries.vectors(), "item", execution);
        ASSERT_TRUE(largest.ok());
        if (!gpu::Fp16SpaceChoice::usable(metric, items.vectors(), *largest)) return;
        gpu::Fp16SpaceChoice choice;
        ASSERT_TRUE(choice.choose(metric, items.vectors(), stream()).ok());
        space_ = choice.space();
        if (!device_.can_filter(space_.padded)) return;
        ASSERT_NO_FATAL_FAILURE(convert(metric, queries.vectors(), items.vectors()));
        ASSERT_NO_FATAL_FAILURE(compare(metric, queries.rows()));
    }

private:
    static std::uint32_t item_of(std::uint32_t row) { return row / 64 * 4 + row % 8 / 2; }

    void convert(Metric metric, const Vectors& queries, const Vectors& items) {
        const auto d = static_cast<std::uint32_t>(queries.dimensions);
        upload(on_device_->raw_queries, queries);
        upload(on_device_->raw_items, items);
        allocate(on_device_->elements, kRows * d);
        allocate(on_device_->squares, kRows);
        allocate(on_device_->query_rows, std::size_t{kRows} * space_.padded);
        allocate(on_device_->query_bounds, kRows);
        allocate(on_device_->groups, 1);
        allocate(on_device_->item_rows, items.rows * space_.padded);
        allocate(on_device_->item_bounds, items.rows);
        allocate(on_device_->largest, 2);
        allocate(on_device_->limits, kRows);
        allocate(on_device_->gates, kRows);
        allocate(on_device_->widths, kRows);
        allocate(on_device_->scores, kRows * kRows);
        ASSERT_TRUE(
            gpu::prepare_queries(metric, {queries.type, on_device_->raw_queries.data(), kRows, d},
                                 on_device_->elements.data(), on_device_->squares.data(), stream())
                .ok());
        ASSERT_TRUE(gpu::convert_queries(
                        space_, {kRows, d, on_device_->elements.data(), on_device_->squares.data()},
                        on_device_->query_rows.data(), on_device_->query_bounds.data(),
                        on_device_->groups.data(), stream())
                        .ok());
        ASSERT_TRUE(gpu::convert_items(space_,
                                       {items.type, on_device_->raw_items.data(),
                                        static_cast<std::uint32_t>(items.rows), d},
                                       on_device_->item_rows.data(), on_device_->item_bounds.data(),
                                       on_device_->largest.data(), stream())
                        .ok());
    }

    gpu::Fp16Queries queries() const {
        return {on_device_->query_rows.data(), on_device_->query_bounds.data(),
                on_device_->groups.data()};
    }

    void compare(Metric metric, const DoubleRows& rows) {
        gpu::Fp16FilterJob job{};
        job.queries = queries();
        job.rows = kRows;
        job.items = {on_device_->item_rows.data(), on_device_->item_bounds.data(),
                     on_device_->largest.data()};
        job.end = kRows * kCopies;
        job.largest = on_device_->scores.data();
        job.groups = kRows;
        job.group_items = kCopies;
        ASSERT_TRUE(gpu::run_fp16_filter(device_, job, space_.padded, stream()).ok());
        const auto scores = download(on_device_->scores);
        const auto query_bounds = download(on_device_->query_bounds);
        const auto item_bounds = download(on_device_->item_bounds);
        DoubleRow center(space_.dimensions);
        if (space_.center != nullptr) {
            ASSERT_EQ(cudaMemcpy(center.data(), space_.center, center.size() * sizeof(double),
                                 cudaMemcpyDeviceToHost),
                      cudaSuccess);
        }
        for (std::uint32_t item = 0; item < kRows; ++item) {
            std::vector<double> distances(kRows);
            std::vector<bool> is(kRows);
            for (std::uint32_t q = 0; q < kRows; ++q) {
                const auto distance = plain_distance(metric, rows[q], rows[item]);
                is[q] = distance.has_value();
                distances[q] = distance.value_or(0);
            }
            // The limit of each query is the distance to this item, which must pass.
            ASSERT_TRUE(on_device_->limits.upload(distances, stream()).ok());
            ASSERT_TRUE(gpu::set_gates({space_, queries(), kRows, on_device_->limits.data(),
                                        on_device_->largest.data(), on_device_->gates.data(),
                                        on_device_->widths.data()},
                                       stream())
                            .ok());
            const auto gates = download(on_device_->gates), widths = download(on_device_->widths);
            const bool fits = std::isfinite(item_bounds[item / 4 * 64 + item % 4 * 2].offset);
            for (std::uint32_t q = 0; q < kRows; ++q) {
                if (!is[q]) continue;
                const float score = scores[q * kRows + item];
                SCOPED_TRACE("query " + std::to_string(q) + ", item " + std::to_string(item) +
                             ", distance " + std::to_string(distances[q]));
                ASSERT_GE(score, gates[q]);
                if (!std::isfinite(query_bounds[q].norm)) {
                    ASSERT_EQ(gates[q], -std::numeric_limits<float>::infinity());
                    continue;
                }
                const long double t =
                    t_of(metric, center, rows[q], query_bounds[q].scale, distances[q]);
                // The gate takes what the distance's own error is in terms of the query.
                const double norm = query_bounds[q].norm;
                ASSERT_GE(score + 2 * space_.double_error * norm * norm, t);
                ASSERT_LE(gates[q], t);
                if (!fits) continue;
                ASSERT_LE(score, t + widths[q]);
                ++compared_;
            }
        }
    }

    /// t of the header, with more digits than a double has.
    long double t_of(Metric metric, const DoubleRow& center, const DoubleRow& query, double scale,
                     double distance) const {
        const long double scaled = static_cast<long double>(distance) * scale;
        if (metric == Metric::cosine) return 1 - static_cast<long double>(distance);
        if (metric == Metric::inner_product) return -scaled;
        long double square = 0;
        for (std::size_t i = 0; i < query.size(); ++i) {
            const long double moved = static_cast<long double>(query[i]) - center[i];
            square += moved * space_.item_scale * (moved * space_.item_scale);
        }
        return (square - scaled * scaled) / 2;
    }

    struct Buffers {
        DeviceBuffer<std::uint8_t> raw_queries, raw_items;
        DeviceBuffer<double> elements, squares, limits;
        DeviceBuffer<__half> query_rows, item_rows;
        DeviceBuffer<gpu::Fp16QueryBound> query_bounds;
        DeviceBuffer<float2> groups;
        DeviceBuffer<gpu::Fp16ItemBound> item_bounds;
        DeviceBuffer<float> largest, gates, widths, scores;
    };

    gpu::Fp16FilterDevice device_;
    gpu::Fp16Space space_;
    std::unique_ptr<Buffers> on_device_;  // goes before the stream that it is freed on

protected:
    std::size_t compared_ = 0;  // pairs of rows that binary16 can hold
};

TEST_F(Fp16SpaceOnDevice, BoundsTheErrorOfEveryScore) {
    RandomRows random;
    for (const Shape shape : kAllShapes)
        for (const std::size_t d : {1, 2, 16, 41, 64, 65, 300, 2000})
            for (const Metric metric : {Metric::euclidean, Metric::cosine, Metric::inner_product})
                for (const ElementType type : {ElementType::float32, ElementType::float64}) {
                    if (type == ElementType::float32 &&
                        (shape == Shape::huge || shape == Shape::mixed))
                        continue;
                    SCOPED_TRACE("shape " + std::to_string(static_cast<int>(shape)) +
                                 ", dimensions " + std::to_string(d) + ", metric " +
                                 std::to_string(static_cast<int>(metric)) + ", type " +
                                 std::to_string(static_cast<int>(type)));
                    ASSERT_NO_FATAL_FAILURE(check(metric, type, random.rows(shape, kRows, d)));
                }
    EXPECT_GT(compared_, 300000u);
}

/// Each element loses about half a unit of binary16, all in one direction; products of both signs
/// have a sum near 0; elements span all magnitudes that binary16 has.
TEST_F(Fp16SpaceOnDevice, BoundsScoresOfRowsThatLoseMost) {
    RandomRows random;
    for (int kind = 0; kind < 3; ++kind)
        for (const std::size_t d : {16, 64, 128, 768, 4096})
            for (const Metric metric : {Metric::euclidean, Metric::cosine, Metric::inner_product}) {
                DoubleRows rows(kRows, DoubleRow(d));
                for (std::uint32_t r = 0; r < kRows; ++r)
                    for (std::size_t i = 0; i < d; ++i) {
                        const double unit = static_cast<double>(random.below(8));
                        if (kind == 0) rows[r][i] = 1 + (2 * unit + 0.49) * 0x1p-10;
                        if (kind == 1)
                            rows[r][i] = ((i >> r % 4) % 2 == 0 ? 1 : -1) * (1 + unit * 0x1p-13);
                        if (kind == 2)
                            rows[r][i] = std::ldexp(1 + random.normal() / 8,
                                                    static_cast<int>(random.below(38)) - 24);
                    }
                SCOPED_TRACE("kind " + std::to_string(kind) + ", dimensions " + std::to_string(d) +
                             ", metric " + std::to_string(static_cast<int>(metric)));
                ASSERT_NO_FATAL_FAILURE(check(metric, ElementType::float64, rows));
            }
    EXPECT_GT(compared_, 60000u);
}

}  // namespace
}  // namespace gputext
