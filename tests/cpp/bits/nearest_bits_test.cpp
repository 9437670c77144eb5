#include "cpp/bits/nearest_bits.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/neighbor_rows.hpp"
#include "tests/support/on_each_simd.hpp"
#include "tests/support/random_bits.hpp"
#include "tests/support/random_keys.hpp"
#include "tests/support/test_size.hpp"

namespace gputext {
namespace {

using namespace testing;

using Keys = std::vector<std::uint32_t>;

class NearestBitsOnEach : public OnEachSimd {};

INSTANTIATE_TEST_SUITE_P(Simd, NearestBitsOnEach, kEachSimd, name_of_simd);

void expect_plain(const NearestBitsParameters& parameters, const std::vector<BitRow>& queries,
                  const std::vector<BitRow>& items, const MatchKeys& match = {},
                  const RowKeys& excluded = {}) {
    Execution execution(3);
    const BitRows query_rows(queries), item_rows(items);
    const auto answer = nearest_bits(parameters, query_rows.view(), item_rows.view(), match,
                                     excluded, execution);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    const auto found = rows_of(*answer);
    ASSERT_EQ(found.size(), queries.size());
    for (std::size_t query = 0; query < queries.size(); ++query)
        ASSERT_EQ(found[query], rows_of(plain_nearest(parameters, queries[query], query, items,
                                                      match, excluded)))
            << "query " << query;
}

TEST_P(NearestBitsOnEach, EqualPlainOnesOnRandomCalls) {
    RandomBits random;
    RandomKeys random_keys;
    constexpr std::size_t kLengths[] = {1, 2, 31, 32, 33, 63, 64, 65, 100, 128, 200, 256, 257, 512, 1000, 2049, 4096};
    const std::size_t calls = rounds<std::size_t>(kSanitized ? 60 : 240);
    for (std::size_t call = 0; call < calls; ++call) {
        NearestBitsParameters parameters;
        parameters.metric = kAllBitMetrics[call % 2];
        parameters.simd = GetParam();
        const std::size_t bits = kLengths[random.below(std::size(kLengths))];
        const std::size_t n = random.below(bits > 300 || random.below(3) > 0 ? 60 : 500);
        const std::size_t q = random.below(random.below(3) == 0 ? 7 : 40);
        // Drawn at once, so that some of both are alike.
        const std::vector<BitRow> all = random.rows(n + q, bits);
        const auto middle = all.begin() + static_cast<std::ptrdiff_t>(n);
        parameters.k = random.below(5) == 0 ? KnnParameters::all_items : 1 + random.below(n + 5);
        if (random.below(2) == 0) {
            const auto part = static_cast<double>(random.below(11)) / 10;
            parameters.radius = random.below(6) == 0 ? -1
                                : parameters.metric == BitMetric::jaccard
                                    ? part
                                    : std::floor(part * static_cast<double>(bits));
        }
        Keys query_keys, item_keys, excluded_queries, excluded_items;
        if (random.below(2) == 0) {
            const KeyShape shape = kAllKeyShapes[random.below(std::size(kAllKeyShapes))];
            query_keys = random_keys.keys(shape, q);
            item_keys = random_keys.keys(shape, n);
        }
        if (random.below(2) == 0) {
            excluded_queries = random_keys.keys(KeyShape::uniform, q);
            excluded_items = random_keys.keys(KeyShape::uniform, n);
        }
        SCOPED_TRACE("call " + std::to_string(call) + ", " + std::to_string(bits) + " bits, k " +
                     std::to_string(parameters.k) + ", radius " +
                     std::to_string(parameters.radius));
        ASSERT_NO_FATAL_FAILURE(expect_plain(parameters, {middle, all.end()},
                                             {all.begin(), middle}, {query_keys, item_keys},
                                             {excluded_queries, excluded_items}));
    }
}

/// More rows with as many ones than a block has: three of 64 each.
TEST_P(NearestBitsOnEach, AreFoundInSeveralBlocks) {
    RandomBits random;
    const auto rows = [&](std::size_t count) {
        std::vector<BitRow> made(count, BitRow(64));
        for (BitRow& row : made)
            for (const std::size_t part : {0, 1, 2}) row[21 * part + random.below(21)] = true;
        return made;
    };
    NearestBitsParameters parameters;
    parameters.simd = GetParam();
    parameters.k = 7;
    ASSERT_NO_FATAL_FAILURE(expect_plain(parameters, rows(tests_are_small() ? 2 : 10), rows(40000)));
}

TEST_P(NearestBitsOnEach, AreFoundAmongManyTies) {
    RandomBits random;
    for (const std::size_t bits : {5, 64, 3000}) {
        const std::vector<BitRow> items = random.rows(bits == 3000 ? 300 : 5000, bits);
        const std::vector<BitRow> queries =
            random.rows(tests_are_small() ? 2 : kSanitized ? 10 : 30, bits);
        for (const BitMetric metric : kAllBitMetrics) {
            NearestBitsParameters parameters;
            parameters.metric = metric;
            parameters.simd = GetParam();
            parameters.k = 7;
            ASSERT_NO_FATAL_FAILURE(expect_plain(parameters, queries, items));
        }
    }
}

TEST(NearestBits, AreFoundByAFewQueriesAmongManyItems) {
    RandomBits random;
    const std::vector<BitRow> items = random.rows(40000, 40), queries = random.rows(3, 40);
    NearestBitsParameters parameters;
    parameters.k = 20;
    ASSERT_NO_FATAL_FAILURE(expect_plain(parameters, queries, items));
}

/// What pgvector's <%> gives for rows without ones.
TEST(BitDistance, IsOneWithoutCommonOnes) {
    EXPECT_EQ(bit_distance(BitMetric::jaccard, 0, 0, 0), 1);
    EXPECT_EQ(bit_distance(BitMetric::jaccard, 3, 0, 0), 1);
    EXPECT_EQ(bit_distance(BitMetric::jaccard, 3, 3, 3), 0);
    EXPECT_EQ(bit_distance(BitMetric::hamming, 0, 0, 0), 0);
}

TEST(BitDistance, FollowsFromTheLeastOnesInCommon) {
    for (const BitMetric metric : kAllBitMetrics)
        for (std::size_t a = 0; a <= 24; ++a)
            for (std::size_t b = 0; b <= 24; ++b)
                for (std::size_t step = 0; step <= 100; ++step) {
                    double limit = static_cast<double>(step) / 4 - 1;
                    if (metric == BitMetric::jaccard)
                        // Some of them are distances themselves, and those just below.
                        limit = step < 50 ? static_cast<double>(step) / 48
                                          : std::nextafter(bit_distance(metric, a, b,
                                                                        step % (std::min(a, b) + 1)),
                                                           step % 2 == 0 ? 2 : -1);
                    std::size_t least = kTooMany;
                    for (std::size_t common = std::min(a, b) + 1; common-- > 0;)
                        if (bit_distance(metric, a, b, common) <= limit) least = common;
                    ASSERT_EQ(least_common(metric, a, b, limit), least)
                        << a << " and " << b << " ones, limit " << limit;
                }
    EXPECT_EQ(least_common(BitMetric::jaccard, 3, 4, INFINITY), 0u);
    EXPECT_EQ(least_common(BitMetric::hamming, 3, 4, INFINITY), 0u);
}

TEST(NearestBits, RefuseWhatIsWrong) {
    RandomBits random;
    const BitRows rows(random.rows(20, 70)), others(random.rows(20, 71));
    Execution execution(1);
    const Keys keys(20), other(19);
    const auto code = [&](const NearestBitsParameters& parameters, const Vectors& items,
                          const MatchKeys& match, const RowKeys& excluded) {
        return nearest_bits(parameters, rows.view(), items, match, excluded, execution)
            .status()
            .code();
    };
    NearestBitsParameters none, nowhere, small;
    none.k = 0;
    nowhere.radius = NAN;
    small.answer_limit = 8;
    Vectors numbers = rows.view();
    numbers.type = ElementType::int32;
    EXPECT_EQ(code({}, rows.view(), {}, {}), ErrorCode::ok);
    EXPECT_EQ(code(none, rows.view(), {}, {}), ErrorCode::invalid_argument);
    EXPECT_EQ(code(nowhere, rows.view(), {}, {}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({}, others.view(), {}, {}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({}, numbers, {}, {}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({}, rows.view(), {keys, other}, {}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({}, rows.view(), {}, {keys, other}), ErrorCode::invalid_argument);
    EXPECT_EQ(code(small, rows.view(), {}, {}), ErrorCode::memory_limit);
    execution.request_stop();
    EXPECT_EQ(code({}, rows.view(), {}, {}), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
