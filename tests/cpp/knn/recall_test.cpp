#include "cpp/knn/recall.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "tests/support/plain_knn.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::DoubleRows;
using testing::plain_distance;
using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

constexpr Metric kAllMetrics[] = {Metric::euclidean, Metric::cosine, Metric::inner_product,
                                  Metric::manhattan};
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

/// What the header says, by plain distances.
ReturnedItems plain_judgement(Metric metric, const DoubleRows& queries, const DoubleRows& items,
                              std::size_t query, const std::vector<std::uint32_t>& returned,
                              double limit) {
    ReturnedItems wanted;
    wanted.farthest = kNoNumber;
    for (const std::uint32_t item : std::set(returned.begin(), returned.end())) {
        ++wanted.count;
        const auto distance = plain_distance(metric, queries[query], items[item]);
        if (!distance) continue;
        if (*distance <= limit) ++wanted.within;
        if (std::isnan(wanted.farthest) || *distance > wanted.farthest) wanted.farthest = *distance;
    }
    return wanted;
}

void expect_plain_judgements(bool sparse, std::size_t dimensions, std::size_t item_count) {
    RandomRows random;
    for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::sparse, Shape::copies})
        for (const Metric metric : kAllMetrics) {
            const TypedRows queries(random.rows(shape, 5, dimensions), ElementType::float32,
                                    dimensions, sparse);
            const TypedRows items(random.rows(shape, item_count, dimensions), ElementType::float32,
                                  dimensions, sparse);
            RecallJudge judge;
            ASSERT_TRUE(judge.set(metric, queries.vectors(), items.vectors(), Stop()).ok());
            for (std::size_t i = 0; i < item_count; ++i) {
                const std::size_t query = random.below(5);
                std::vector<std::uint32_t> returned(random.below(item_count / 2));
                for (std::uint32_t& item : returned)
                    item = static_cast<std::uint32_t>(random.below(item_count));
                // Often the distance of an item itself.
                const double limit = plain_distance(metric, queries.rows()[query],
                                                    items.rows()[random.below(item_count)])
                                         .value_or(kNoNumber);
                const ReturnedItems wanted =
                    plain_judgement(metric, queries.rows(), items.rows(), query, returned, limit);
                const ReturnedItems found = judge.judge(query, returned, limit);
                EXPECT_EQ(found.count, wanted.count);
                EXPECT_EQ(found.within, wanted.within);
                EXPECT_TRUE(found.farthest == wanted.farthest ||
                            (std::isnan(found.farthest) && std::isnan(wanted.farthest)));
            }
        }
}

TEST(RecallJudge, CountsItemsWithinTheLimitOnce) {
    expect_plain_judgements(false, 20, 60);
}

TEST(RecallJudge, TakesSparseRows) {
    expect_plain_judgements(true, 20, 60);
    expect_plain_judgements(true, FewerColumns::few_dimensions + 100, 6);
}

TEST(RecallJudge, HasNothingToSayOfNoItems) {
    const TypedRows query({{1, 2}}, ElementType::float32, 2);
    const TypedRows items({}, ElementType::float32, 2);
    RecallJudge judge;
    ASSERT_TRUE(judge.set(Metric::cosine, query.vectors(), items.vectors(), Stop()).ok());
    const ReturnedItems returned = judge.judge(0, {}, 1);
    EXPECT_EQ(returned.count, 0u);
    EXPECT_EQ(returned.within, 0u);
    EXPECT_TRUE(std::isnan(returned.farthest));
}

}  // namespace
}  // namespace gputext
