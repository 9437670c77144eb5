#include "kernels/bits/nearest_bits.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/support/device_fixture.hpp"
#include "tests/support/neighbor_rows.hpp"
#include "tests/support/random_bits.hpp"
#include "tests/support/random_keys.hpp"

namespace gputext {
namespace {

using namespace testing;

using Keys = std::vector<std::uint32_t>;

class NearestBitsOnDevice : public RingTest {
protected:
    /// Compares with the CPU's answer.
    void expect_same(const NearestBitsParameters& parameters, const Vectors& queries,
                     const Vectors& items, const RowKeys& excluded = {}) {
        Execution execution(8);
        const auto expected =
            nearest_bits(parameters, queries, items, {}, excluded, execution);
        ASSERT_TRUE(expected.ok()) << expected.status().message();
        const auto found =
            gpu::nearest_bits(parameters, queries, items, excluded, work, ring(), execution);
        ASSERT_TRUE(found.ok()) << found.status().message();
        ASSERT_EQ(found->begins, expected->begins);
        ASSERT_EQ(found->items, expected->items);
        ASSERT_EQ(found->distances, expected->distances);
    }
};

/// Words with about half of their bits.
std::vector<std::uint32_t> random_words(std::size_t count, std::uint64_t number) {
    std::mt19937_64 generator(seed() + number);
    std::vector<std::uint32_t> words(count);
    for (std::uint32_t& word : words) word = static_cast<std::uint32_t>(generator());
    return words;
}

TEST_F(NearestBitsOnDevice, EqualTheCpusOnRandomCalls) {
    RandomBits random;
    RandomKeys random_keys;
    const std::size_t calls = rounds<std::size_t>(small() ? 24 : 300);
    for (std::size_t call = 0; call < calls; ++call) {
        NearestBitsParameters parameters;
        parameters.metric = kAllBitMetrics[call % 2];
        const std::size_t bits = 1 + random.below(random.below(4) == 0 ? 4096 : 300);
        const std::size_t n = random.below(random.below(4) == 0 ? 3000 : 100);
        const std::size_t q = random.below(random.below(4) == 0 ? 1500 : 100);
        // Drawn at once, so that some of both are alike.
        const std::vector<BitRow> all = random.rows(n + q, bits);
        const auto middle = all.begin() + static_cast<std::ptrdiff_t>(n);
        parameters.k = random.below(5) == 0 ? KnnParameters::all_items : 1 + random.below(50);
        if (random.below(2) == 0) {
            const double part = static_cast<double>(random.below(9)) / 8;
            parameters.radius = random.below(9) == 0 ? -1
                                : parameters.metric == BitMetric::jaccard
                                    ? part
                                    : std::floor(part * static_cast<double>(bits));
        }
        Keys of_queries, of_items;
        if (random.below(2) == 0) {
            const auto shape = kAllKeyShapes[random.below(std::size(kAllKeyShapes))];
            of_queries = random_keys.keys(shape, q);
            of_items = random_keys.keys(shape, n);
        }
        SCOPED_TRACE("call " + std::to_string(call) + ", " + std::to_string(q) + " queries, " +
                     std::to_string(n) + " items of " + std::to_string(bits) + " bits, k " +
                     std::to_string(parameters.k) + ", radius " +
                     std::to_string(parameters.radius));
        const BitRows queries({middle, all.end()}, bits), items({all.begin(), middle}, bits);
        // The kernels do not look for all items without a radius.
        if (!gpu::has_kernels_for(parameters, items.view())) parameters.k = 1000;
        ASSERT_NO_FATAL_FAILURE(
            expect_same(parameters, queries.view(), items.view(), {of_queries, of_items}));
    }
}

TEST_F(NearestBitsOnDevice, EqualTheCpusOnManyRows) {
    const std::size_t n = small() ? 2000 : 60000, q = n / 6;
    for (const std::size_t bits : {32, 64, 256, 512, 1024}) {
        const std::size_t words = bits / 32;
        const auto of_items = random_words(n * words, 1), of_queries = random_words(q * words, 2);
        const Vectors items{ElementType::bit, n, bits, of_items.data(), {}, {}};
        const Vectors queries{ElementType::bit, q, bits, of_queries.data(), {}, {}};
        for (const BitMetric metric : kAllBitMetrics)
            for (const std::size_t k : {1, 10, 300}) {
                SCOPED_TRACE(std::to_string(bits) + " bits, k " + std::to_string(k));
                NearestBitsParameters parameters;
                parameters.metric = metric;
                parameters.k = k;
                ASSERT_NO_FATAL_FAILURE(expect_same(parameters, queries, items));
            }
        NearestBitsParameters within;
        within.k = KnnParameters::all_items;
        within.radius = std::floor(0.4 * static_cast<double>(bits));
        ASSERT_NO_FATAL_FAILURE(expect_same(within, queries, items));
    }
}

/// Few queries, whose columns are searched by many blocks that share limits.
TEST_F(NearestBitsOnDevice, EqualTheCpusOnFewQueries) {
    const std::size_t n = small() ? 5000 : 500000;
    const auto of_items = random_words(n * 4, 3), of_queries = random_words(20 * 4, 4);
    const Vectors items{ElementType::bit, n, 128, of_items.data(), {}, {}};
    const Vectors queries{ElementType::bit, 20, 128, of_queries.data(), {}, {}};
    for (const BitMetric metric : kAllBitMetrics) {
        NearestBitsParameters parameters;
        parameters.metric = metric;
        parameters.k = 25;
        ASSERT_NO_FATAL_FAILURE(expect_same(parameters, queries, items));
    }
}

/// Most items are as far as the k-th one.
TEST_F(NearestBitsOnDevice, EqualTheCpusWhereAlmostAllAreTies) {
    std::vector<std::uint32_t> words(small() ? 3000 : 40000, 0x0f0f0f0f);
    for (std::size_t i = 0; i < words.size(); i += 97) words[i] ^= static_cast<std::uint32_t>(i);
    const Vectors rows{ElementType::bit, words.size(), 32, words.data(), {}, {}};
    for (const BitMetric metric : kAllBitMetrics) {
        NearestBitsParameters parameters;
        parameters.metric = metric;
        parameters.k = 3;
        ASSERT_NO_FATAL_FAILURE(expect_same(parameters, rows, rows));
    }
}

TEST_F(NearestBitsOnDevice, LittleMemoryGivesTheSameAnswer) {
    RandomBits random;
    const BitRows rows(random.rows(small() ? 600 : 3000, 100));
    NearestBitsParameters parameters;
    parameters.k = 4;
    work.bytes = std::size_t{3} << 20;
    ASSERT_NO_FATAL_FAILURE(expect_same(parameters, rows.view(), rows.view()));
    parameters.k = KnnParameters::all_items;
    parameters.radius = 90;
    ASSERT_NO_FATAL_FAILURE(expect_same(parameters, rows.view(), rows.view()));

    work.bytes = 1 << 16;
    Execution execution(2);
    const auto found =
        gpu::nearest_bits(parameters, rows.view(), rows.view(), {}, work, ring(), execution);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.status().code(), ErrorCode::out_of_memory);
    EXPECT_NE(found.status().message().find("bits take"), std::string::npos);
}

TEST_F(NearestBitsOnDevice, RefuseWhatTheCpuRefuses) {
    RandomBits random;
    const BitRows rows(random.rows(2, 40));
    Execution execution(1);
    const Keys keys(2), other(1);
    const auto code = [&](const NearestBitsParameters& parameters, const RowKeys& excluded) {
        return gpu::nearest_bits(parameters, rows.view(), rows.view(), excluded, work, ring(),
                                 execution)
            .status()
            .code();
    };
    NearestBitsParameters none, small_answer;
    none.k = 0;
    small_answer.answer_limit = 8;
    EXPECT_EQ(code({}, {keys, keys}), ErrorCode::ok);
    EXPECT_EQ(code(none, {}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({}, {keys, other}), ErrorCode::invalid_argument);
    EXPECT_EQ(code(small_answer, {}), ErrorCode::memory_limit);
    execution.request_stop();
    EXPECT_EQ(code({}, {}), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
