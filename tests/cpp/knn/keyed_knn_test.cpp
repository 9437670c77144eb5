#include "cpp/knn/keyed_knn.hpp"

#include <gtest/gtest.h>

#include <random>

#include "cpp/knn/knn.hpp"
#include "tests/support/neighbor_rows.hpp"
#include "tests/support/on_each_simd.hpp"
#include "tests/support/plain_knn.hpp"
#include "tests/support/random_keys.hpp"
#include "tests/support/stops_soon.hpp"
#include "tests/support/test_size.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::kAllKeyShapes;
using testing::kAllShapes;
using testing::KeyShape;
using testing::kSanitized;
using testing::name_of_simd;
using testing::OnEachSimd;
using testing::plain_neighbors;
using testing::RandomKeys;
using testing::RandomRows;
using testing::rows_of;
using testing::Shape;
using testing::TypedRows;

using Keys = std::vector<std::uint32_t>;

constexpr Metric kAllMetrics[] = {Metric::euclidean, Metric::cosine, Metric::inner_product,
                                  Metric::manhattan};

class KeyedKnnOnEach : public OnEachSimd {
protected:
    void expect_plain_answer(KnnParameters parameters, const TypedRows& queries,
                             const TypedRows& items, const MatchKeys& match,
                             const RowKeys& excluded, std::size_t step = 1) {
        parameters.simd = GetParam();
        Execution execution(3);
        const auto answer =
            keyed_knn(parameters, queries.vectors(), items.vectors(), match, excluded, execution);
        ASSERT_TRUE(answer.ok()) << answer.status().message();
        const auto found = rows_of(*answer);
        ASSERT_EQ(found.size(), queries.rows().size());
        for (std::size_t q = 0; q < found.size(); q += step) {
            std::vector<bool> left_out(items.rows().size());
            for (std::size_t i = 0; i < left_out.size(); ++i)
                left_out[i] = !match.match(q, i) || !excluded.differ(q, i);
            ASSERT_EQ(found[q], rows_of(plain_neighbors(parameters, queries.rows()[q],
                                                         items.rows(), left_out)))
                << "query " << q;
        }
    }

    RandomRows random_;
    RandomKeys random_keys_;
};

INSTANTIATE_TEST_SUITE_P(Simd, KeyedKnnOnEach,
                         ::testing::Values(Simd::portable, Simd::avx2, Simd::avx512, Simd::bfloat16, Simd::amx),
                         name_of_simd);

KnnParameters any_parameters(RandomRows& random, std::size_t items) {
    KnnParameters parameters;
    parameters.metric = kAllMetrics[random.below(4)];
    parameters.k = random.below(4) == 0   ? 1
                   : random.below(8) == 0 ? KnnParameters::all_items
                                          : 1 + random.below(random.below(2) == 0 ? 12 : items + 5);
    if (random.below(3) == 0) parameters.radius = 0.1 * static_cast<double>(random.below(60));
    parameters.include_ties = random.below(3) == 0;
    if (random.below(3) == 0) parameters.memory_limit = random.below(100000);
    return parameters;
}

/// All shapes of rows and keys, dense and sparse, of few items and of many.
TEST_P(KeyedKnnOnEach, EqualsAPlainSearchOnRandomCalls) {
    const std::size_t calls = testing::rounds<std::size_t>(kSanitized ? 60 : 400);
    for (std::size_t call = 0; call < calls; ++call) {
        const Shape shape = kAllShapes[random_.below(std::size(kAllShapes))];
        const KeyShape key_shape = kAllKeyShapes[random_.below(std::size(kAllKeyShapes))];
        const std::size_t d = 1 + random_.below(random_.below(2) == 0 ? 8 : 70);
        const std::size_t n = random_.below(random_.below(3) == 0 ? 400 : 60);
        const std::size_t q = random_.below(random_.below(3) == 0 ? 400 : 60);
        const bool sparse = random_.below(4) == 0;
        const bool extreme = shape == Shape::tiny || shape == Shape::huge || shape == Shape::mixed;
        const ElementType type = extreme && !sparse ? ElementType::float64
                                 : sparse || extreme || random_.below(2) == 0
                                     ? ElementType::float32
                                     : ElementType::float16;
        if (extreme && sparse) continue;
        const TypedRows queries(random_.rows(shape, q, d), type, d, sparse);
        const TypedRows items(random_.rows(shape, n, d), type, d, sparse);
        const Keys query_keys = random_keys_.keys(key_shape, q);
        const Keys item_keys = random_keys_.keys(key_shape, n);
        Keys excluded_queries, excluded_items;
        if (random_.below(2) == 0) {
            excluded_queries = random_keys_.keys(KeyShape::uniform, q);
            excluded_items = random_keys_.keys(KeyShape::uniform, n);
        }
        const KnnParameters parameters = any_parameters(random_, n);
        SCOPED_TRACE("call " + std::to_string(call) + ", shape " +
                     std::to_string(static_cast<int>(shape)) + ", keys " +
                     std::to_string(static_cast<int>(key_shape)) + ", metric " +
                     std::to_string(static_cast<int>(parameters.metric)) + ", d " +
                     std::to_string(d) + ", k " + std::to_string(parameters.k) + ", memory " +
                     std::to_string(parameters.memory_limit));
        ASSERT_NO_FATAL_FAILURE(expect_plain_answer(parameters, queries, items,
                                                    {query_keys, item_keys},
                                                    {excluded_queries, excluded_items}));
    }
}

/// Groups that are searched as matrices, of one thread and of all, and in parts.
TEST_P(KeyedKnnOnEach, EqualsAPlainSearchInLargeGroups) {
    constexpr std::size_t d = 33, n = 2000, q = 900;
    for (const Shape shape : {Shape::copies, Shape::gaussian}) {
        if (shape == Shape::gaussian && testing::tests_are_small()) continue;
        const TypedRows queries(random_.rows(shape, q, d), ElementType::float32, d);
        const TypedRows items(random_.rows(shape, n, d), ElementType::float32, d);
        for (const std::size_t keys : {1, 2, 5})
            for (const std::size_t memory : {std::size_t{1} << 30, std::size_t{200000}}) {
                Keys query_keys(q), item_keys(n);
                for (auto* side : {&query_keys, &item_keys})
                    for (std::uint32_t& key : *side)
                        key = static_cast<std::uint32_t>(random_.below(keys));
                // A few rows of another key, and some without.
                for (std::size_t i = 0; i < n; i += 97) item_keys[i] = i % 2 == 0 ? 99 : kNoKey;
                for (std::size_t i = 0; i < q; i += 89) query_keys[i] = i % 2 == 0 ? 99 : kNoKey;
                KnnParameters parameters{.k = 5, .metric = kAllMetrics[random_.below(4)]};
                parameters.include_ties = random_.below(2) == 0;
                parameters.memory_limit = memory;
                SCOPED_TRACE(std::to_string(keys) + " keys, memory " + std::to_string(memory));
                ASSERT_NO_FATAL_FAILURE(expect_plain_answer(parameters, queries, items,
                                                            {query_keys, item_keys}, {}, 7));
            }
    }
}

TEST(KeyedKnn, WithoutKeysIsAPlainSearch) {
    RandomRows random;
    const TypedRows rows(random.rows(Shape::gaussian, 300, 8), ElementType::float32, 8);
    Execution execution(2);
    const auto found = keyed_knn({.k = 3}, rows.vectors(), rows.vectors(), {}, {}, execution);
    const auto wanted = knn({.k = 3}, rows.vectors(), rows.vectors(), {}, execution);
    ASSERT_TRUE(found.ok() && wanted.ok());
    EXPECT_EQ(testing::differing(*found, *wanted), 0u);
}

TEST(KeyedKnn, RefusesWhatASearchRefuses) {
    RandomRows random;
    const TypedRows rows(random.rows(Shape::gaussian, 20, 4), ElementType::float32, 4);
    const TypedRows others(random.rows(Shape::gaussian, 20, 5), ElementType::float32, 5);
    auto wrong = random.rows(Shape::gaussian, 20, 4);
    wrong[17][2] = std::numeric_limits<double>::infinity();
    const TypedRows infinite(wrong, ElementType::float32, 4);
    const Keys keys(20, kNoKey), few(19);
    Execution execution(2);
    const auto status = [&](const KnnParameters& parameters, const TypedRows& items,
                            const MatchKeys& match, const RowKeys& excluded = {}) {
        return keyed_knn(parameters, rows.vectors(), items.vectors(), match, excluded, execution)
            .status();
    };
    EXPECT_TRUE(status({}, rows, {keys, keys}).ok());
    EXPECT_EQ(status({}, rows, {keys, few}).message(),
              "there must be a key for each query and each item");
    EXPECT_EQ(status({.k = 0}, rows, {keys, keys}).message(), "k must be at least 1");
    EXPECT_EQ(status({}, others, {keys, keys}).code(), ErrorCode::invalid_argument);
    EXPECT_EQ(status({}, rows, {keys, keys}, {few, keys}).code(), ErrorCode::invalid_argument);
    // Although the item is in no group.
    EXPECT_NE(status({}, infinite, {keys, keys}).message().find("item 17"), std::string::npos);
}

TEST(KeyedKnn, RespectsTheLimitOfTheAnswer) {
    RandomRows random;
    const TypedRows rows(random.rows(Shape::gaussian, 600, 20), ElementType::float32, 20);
    for (const std::uint32_t group : {8u, 600u}) {
        Keys keys(600);
        for (std::uint32_t i = 0; i < 600; ++i) keys[i] = i / group;
        Execution execution(2);
        KnnParameters parameters{.k = 8};
        parameters.answer_limit = 20000;
        const auto found =
            keyed_knn(parameters, rows.vectors(), rows.vectors(), {keys, keys}, {}, execution);
        EXPECT_EQ(found.status().code(), ErrorCode::memory_limit);
    }
}

TEST(KeyedKnn, StopsSoonAtAnyTime) {
    constexpr std::size_t d = 16, n = kSanitized ? 30000 : 300000;
    std::mt19937 generator(1);
    std::vector<float> elements(n * d);
    for (float& element : elements) element = static_cast<float>(generator() >> 8);
    const Vectors rows{ElementType::float32, n, d, elements.data(), {}, {}};
    for (const std::size_t of_key : {std::size_t{1}, std::size_t{8}, std::size_t{3000}, n}) {
        Keys keys(n);
        for (std::size_t i = 0; i < n; ++i)
            keys[i] = static_cast<std::uint32_t>(i * 7919 % n / of_key);
        for (const int time : {2, 10, 40, 200}) {
            SCOPED_TRACE(std::to_string(of_key) + " rows a key, after " +
                         std::to_string(time) + " ms");
            testing::expect_stops_soon(
                [&](Execution& execution) {
                    return keyed_knn({.k = 5}, rows, rows, {keys, keys}, {}, execution).status();
                },
                testing::after(time), 200);
        }
    }
}

}  // namespace
}  // namespace gputext
