#include "cpp/terms/bm25.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cpp/terms/knn.hpp"
#include "tests/support/text_rows.hpp"

namespace gputext {
namespace {

using testing::plain_bm25;
using testing::plain_factors;
using testing::PlainText;
using testing::PlainTexts;
using testing::RandomTexts;
using testing::TextRows;
using testing::TextShape;

TermParameters of_bm25() {
    TermParameters parameters;
    parameters.weighting = TermWeighting::bm25;
    return parameters;
}

/// "a cat is a feline and likes to purr", "a dog is the human's best friend and loves to play",
/// "a bird is a beautiful animal that can fly", "a fish is a creature that lives in water and
/// swims", by words: the query "does the fish purr like a cat" has "fish", "purr", "cat", "a",
/// "the".
TEST(Bm25, EqualsAComputationByHand) {
    enum : std::uint32_t { a, cat, purr, the, fish, other };
    const PlainTexts texts{{{a, 2}, {cat, 1}, {purr, 1}, {other, 5}},
                           {{a, 1}, {the, 1}, {other, 9}},
                           {{a, 2}, {other, 7}},
                           {{a, 2}, {fish, 1}, {other, 8}}};
    const TextRows items(texts, ElementType::int32, 6);
    const TextRows query({{{a, 1}, {cat, 1}, {purr, 1}, {the, 1}, {fish, 1}}}, ElementType::int32,
                         6);
    Execution execution(2);
    WeighedItems weighed;
    ASSERT_TRUE(weighed
                    .set(of_bm25(),
                         term_factors(of_bm25(), *document_frequencies(items.vectors(), execution),
                                      texts.size()),
                         items.vectors(), execution)
                    .ok());
    const auto found = term_knn({.k = 4, .metric = Metric::inner_product}, weighed.factors(),
                                query.vectors(), weighed.items(), {}, execution);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->items, (std::vector<std::uint32_t>{0, 3, 1, 2}));
    const double rare = std::log(1 + 3.5 / 1.5), everywhere = std::log(1 + 0.5 / 4.5);
    const auto part = [](double count, double length) {
        return count / (count + 1.2 * (0.25 + 0.75 * length / 10));
    };
    const double wanted[] = {2 * rare * part(1, 9) + everywhere * part(2, 9),
                             rare * part(1, 11) + everywhere * part(2, 11),
                             rare * part(1, 11) + everywhere * part(1, 11),
                             everywhere * part(2, 9)};
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(-found->distances[i], wanted[i], 1e-6);
}

TEST(Bm25, WeightsHaveTheBitsOfAPlainComputation) {
    RandomTexts random;
    for (const TextShape shape : {TextShape::zipf, TextShape::vocabulary, TextShape::zeros})
        for (const unsigned threads : {1u, 3u})
            for (const double average : {0.0, 12.5}) {
                const TextRows items(random.texts(shape, 3000, 400), ElementType::int32, 400);
                TermParameters parameters = of_bm25();
                parameters.k1 = 0.1 * static_cast<double>(random.below(30));
                parameters.b = 0.1 * static_cast<double>(random.below(11));
                parameters.average_length = average;
                parameters.min_document_frequency = 1 + static_cast<std::uint32_t>(random.below(9));
                const auto factors = plain_factors(parameters, items.texts(), 400);
                Execution execution(threads);
                WeighedItems weighed;
                ASSERT_TRUE(weighed.set(parameters, factors, items.vectors(), execution).ok());
                for (std::size_t term = 0; term < 400; ++term)
                    ASSERT_EQ(weighed.factors()[term], factors[term] > 0 ? 1 : 0);
                const PlainTexts wanted = plain_bm25(parameters, items.texts(), factors);
                std::size_t at = 0;
                for (const PlainText& text : wanted)
                    for (const auto& [term, weight] : text)
                        ASSERT_EQ(static_cast<const float*>(weighed.items().elements)[at++],
                                  static_cast<float>(weight));
            }
}

TEST(Bm25, OtherWeightingsLeaveItemsAsTheyAre) {
    const TextRows items({{{0, 3}, {1, 2}}}, ElementType::int32, 2);
    Execution execution(1);
    WeighedItems weighed;
    for (const TermWeighting weighting : {TermWeighting::given, TermWeighting::tf_idf}) {
        ASSERT_TRUE(weighed.set({weighting, 1}, {0.5, 2}, items.vectors(), execution).ok());
        EXPECT_EQ(weighed.items().elements, items.vectors().elements);
        EXPECT_EQ(weighed.factors()[0], 0.5);
    }
}

TEST(Bm25, CountsThatAreNotAboveZeroWeighNothing) {
    const TextRows items({{{0, -1}, {1, 0}, {2, 5}}}, ElementType::int32, 3);
    TermParameters parameters = of_bm25();
    parameters.k1 = 0;
    Execution execution(1);
    WeighedItems weighed;
    ASSERT_TRUE(weighed.set(parameters, {2, 2, 2}, items.vectors(), execution).ok());
    const auto* const weights = static_cast<const float*>(weighed.items().elements);
    EXPECT_EQ(weights[0], 0);
    EXPECT_EQ(weights[1], 0);
    EXPECT_EQ(weights[2], 2);
}

TEST(Bm25, RefusesWhatItCannotWeigh) {
    const TextRows counts({{{0, 1}}}, ElementType::int32, 1);
    const TextRows weights({{{0, 1}}}, ElementType::float32, 1);
    const double none = std::nan(""), most = std::numeric_limits<double>::infinity();
    Execution execution(1);
    const auto code = [&](const TermParameters& parameters, const Vectors& items,
                          std::size_t factors = 1) {
        WeighedItems weighed;
        return weighed.set(parameters, std::vector<double>(factors, 1), items, execution).code();
    };
    EXPECT_EQ(code(of_bm25(), counts.vectors()), ErrorCode::ok);
    EXPECT_EQ(code(of_bm25(), weights.vectors()), ErrorCode::invalid_argument);
    EXPECT_EQ(code(of_bm25(), counts.vectors(), 2), ErrorCode::invalid_argument);
    const auto with = [&](double TermParameters::*field, double value) {
        TermParameters parameters = of_bm25();
        parameters.*field = value;
        return code(parameters, counts.vectors());
    };
    for (const double value : {-0.1, none, most}) {
        EXPECT_EQ(with(&TermParameters::k1, value), ErrorCode::invalid_argument);
        EXPECT_EQ(with(&TermParameters::b, value), ErrorCode::invalid_argument);
        EXPECT_EQ(with(&TermParameters::average_length, value), ErrorCode::invalid_argument);
    }
    EXPECT_EQ(with(&TermParameters::b, 1.1), ErrorCode::invalid_argument);
    execution.request_stop();
    EXPECT_EQ(code(of_bm25(), counts.vectors()), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
