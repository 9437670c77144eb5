#include "kernels/strings/nearest_strings.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/device_fixture.hpp"
#include "tests/support/neighbor_rows.hpp"
#include "tests/support/plain_strings.hpp"
#include "tests/support/random_keys.hpp"

namespace gputext {
namespace {

using testing::kAllKeyShapes;
using testing::kAllStringMetrics;
using testing::name_of;
using testing::RandomKeys;
using testing::RandomNames;
using testing::rows_of;
using testing::String;
using testing::string_of;
using testing::StringRows;

using Keys = std::vector<std::uint32_t>;

class NearestStringsOnDevice : public testing::RingTest {
protected:
    /// Compares with the CPU's answer.
    void expect_same(const NearestStringsParameters& parameters, const StringRows& queries,
                     const StringRows& items, const RowKeys& excluded = {}) {
        Execution execution(3);
        const auto expected = nearest_strings(parameters, queries.view(), items.view(), {},
                                              excluded, execution);
        ASSERT_TRUE(expected.ok()) << expected.status().message();
        const auto found = gpu::nearest_strings(parameters, queries.view(), items.view(), excluded,
                                                work, ring(), execution);
        ASSERT_TRUE(found.ok()) << found.status().message();
        ASSERT_EQ(found->begins, expected->begins);
        ASSERT_EQ(found->items, expected->items);
        ASSERT_EQ(found->distances, expected->distances);
    }

    /// Strings of the metric: for trigram sets that ascend.
    static StringRows rows(StringMetric metric, std::vector<String> strings) {
        if (metric == StringMetric::trigram)
            for (String& string : strings) string = RandomNames::ascending(std::move(string));
        return StringRows(strings);
    }
};

TEST_F(NearestStringsOnDevice, EqualTheCpusOnRandomCalls) {
    RandomNames random;
    RandomKeys random_keys;
    const std::size_t calls = testing::rounds<std::size_t>(small() ? 24 : 300);
    for (std::size_t call = 0; call < calls; ++call) {
        NearestStringsParameters parameters;
        parameters.metric = kAllStringMetrics[call % std::size(kAllStringMetrics)];
        const std::size_t n = random.below(random.below(4) == 0 ? 3000 : 100);
        const std::size_t q = random.below(random.below(4) == 0 ? 1500 : 100);
        const std::size_t longest = random.below(6) == 0 ? 600 : 5 + random.below(80);
        // Drawn at once, so that some of both are alike.
        const std::vector<String> all = random.strings(n + q, longest);
        const auto middle = all.begin() + static_cast<std::ptrdiff_t>(n);
        parameters.k = random.below(5) == 0 ? KnnParameters::all_items : 1 + random.below(20);
        if (random.below(3) == 0)
            parameters.radius =
                random.below(4) == 0 ? -1 : 0.1 * static_cast<double>(random.below(60));
        Keys of_queries, of_items;
        if (random.below(2) == 0) {
            const auto shape = kAllKeyShapes[random.below(std::size(kAllKeyShapes))];
            of_queries = random_keys.keys(shape, q);
            of_items = random_keys.keys(shape, n);
        }
        SCOPED_TRACE("call " + std::to_string(call) + ", " + name_of(parameters.metric) + ", " +
                     std::to_string(q) + " queries, " + std::to_string(n) + " items, k " +
                     std::to_string(parameters.k) + ", radius " +
                     std::to_string(parameters.radius));
        ASSERT_NO_FATAL_FAILURE(expect_same(
            parameters, rows(parameters.metric, {middle, all.end()}),
            rows(parameters.metric, {all.begin(), middle}), {of_queries, of_items}));
    }
}

TEST_F(NearestStringsOnDevice, EqualTheCpusOnManyNames) {
    RandomNames random;
    const std::size_t n = small() ? 300 : 20000;
    std::vector<String> items, queries;
    while (items.size() < n)
        for (String& string : random.strings(n / 10, 40)) items.push_back(std::move(string));
    for (std::size_t i = 0; i < n / 4; ++i)
        queries.push_back(random.edited(items[random.below(items.size())], 26));
    for (const StringMetric metric : kAllStringMetrics)
        for (const std::size_t k : {1, 5, 40}) {
            SCOPED_TRACE(std::string(name_of(metric)) + ", k " + std::to_string(k));
            NearestStringsParameters parameters;
            parameters.metric = metric;
            parameters.k = k;
            ASSERT_NO_FATAL_FAILURE(
                expect_same(parameters, rows(metric, queries), rows(metric, items)));
        }
}

/// All items are within a radius above all distances.
TEST_F(NearestStringsOnDevice, EqualTheCpusByWideRadii) {
    RandomNames random;
    const std::vector<String> all = random.strings(130, 30);
    const auto middle = all.begin() + 70;
    for (const StringMetric metric : kAllStringMetrics)
        for (const double radius : {1.0, 1.5, 2.0, 3.0, 1e9}) {
            SCOPED_TRACE(std::string(name_of(metric)) + ", radius " + std::to_string(radius));
            NearestStringsParameters parameters;
            parameters.metric = metric;
            parameters.k = KnnParameters::all_items;
            parameters.radius = radius;
            ASSERT_NO_FATAL_FAILURE(expect_same(parameters, rows(metric, {all.begin(), middle}),
                                                rows(metric, {middle, all.end()})));
        }
}

/// A filter that leaves more than fits is repeated on fewer rows, and then on fewer columns.
TEST_F(NearestStringsOnDevice, LittleMemoryGivesTheSameAnswer) {
    work.bytes = std::size_t{3} << 20;
    const std::size_t n = small() ? 600 : 5000;
    std::vector<String> items(n, string_of("the same name")), queries(3 * n / 5, items[0]);
    for (std::size_t i = 0; i < n; i += 7) items[i].push_back('x');
    NearestStringsParameters parameters;
    parameters.metric = StringMetric::levenshtein;
    parameters.k = 3;
    ASSERT_NO_FATAL_FAILURE(expect_same(parameters, StringRows(queries), StringRows(items)));
    parameters.k = KnnParameters::all_items;
    parameters.radius = 0;
    queries.resize(20);
    ASSERT_NO_FATAL_FAILURE(expect_same(parameters, StringRows(queries), StringRows(items)));

    work.bytes = 1 << 16;
    Execution execution(2);
    const StringRows rows(items);
    const auto found = gpu::nearest_strings(parameters, rows.view(), rows.view(), {}, work, ring(),
                                            execution);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.status().code(), ErrorCode::out_of_memory);
    EXPECT_NE(found.status().message().find("strings take"), std::string::npos);
}

TEST_F(NearestStringsOnDevice, RefuseWhatTheCpuRefuses) {
    const StringRows rows({string_of("a"), string_of("b")});
    Execution execution(1);
    const Keys keys(2), other(1);
    const auto code = [&](const NearestStringsParameters& parameters, const RowKeys& excluded) {
        return gpu::nearest_strings(parameters, rows.view(), rows.view(), excluded, work, ring(),
                                    execution)
            .status()
            .code();
    };
    NearestStringsParameters none, small_answer;
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
