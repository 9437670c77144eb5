#include "cpp/terms/keyed_knn.hpp"

#include <gtest/gtest.h>

#include <bit>

#include "cpp/terms/tfidf.hpp"
#include "tests/support/neighbor_rows.hpp"
#include "tests/support/on_each_simd.hpp"
#include "tests/support/plain_terms.hpp"
#include "tests/support/random_keys.hpp"
#include "tests/support/text_rows.hpp"

namespace gputext {
namespace {

using testing::kAllKeyShapes;
using testing::kAllTextShapes;
using testing::kEachSimd;
using testing::KeyShape;
using testing::kSanitized;
using testing::name_of_simd;
using testing::of_counts;
using testing::OnEachSimd;
using testing::plain_term_distance;
using testing::PlainNeighbors;
using testing::PlainWeights;
using testing::RandomKeys;
using testing::RandomTexts;
using testing::rows_of;
using testing::TextRows;
using testing::TextShape;

using Keys = std::vector<std::uint32_t>;

class KeyedTermKnnOnEach : public OnEachSimd {};

INSTANTIATE_TEST_SUITE_P(Simd, KeyedTermKnnOnEach, kEachSimd, name_of_simd);

/// The factors are those of all items, whatever their keys.
TEST_P(KeyedTermKnnOnEach, EqualsAPlainSearchOnRandomCalls) {
    RandomTexts random;
    RandomKeys random_keys;
    const std::size_t calls = testing::rounds<std::size_t>(kSanitized ? 60 : 400);
    for (std::size_t call = 0; call < calls; ++call) {
        const TextShape shape = kAllTextShapes[random.below(std::size(kAllTextShapes))];
        const KeyShape key_shape = kAllKeyShapes[random.below(std::size(kAllKeyShapes))];
        const std::size_t terms = 1 + random.below(random.below(2) == 0 ? 20 : 300);
        const bool large = random.below(8) == 0;
        const std::size_t n = random.below(large ? 700 : 80), q = random.below(large ? 500 : 80);
        const ElementType type = of_counts(shape) ? ElementType::int32 : ElementType::float32;
        const TextRows queries(random.texts(shape, q, terms), type, terms);
        const TextRows items(random.texts(shape, n, terms), type, terms);
        const Keys query_keys = random_keys.keys(key_shape, q);
        const Keys item_keys = random_keys.keys(key_shape, n);
        Keys excluded_queries, excluded_items;
        if (random.below(2) == 0) {
            excluded_queries = random_keys.keys(KeyShape::uniform, q);
            excluded_items = random_keys.keys(KeyShape::uniform, n);
        }
        const MatchKeys match{query_keys, item_keys};
        const RowKeys excluded{excluded_queries, excluded_items};
        TermKnnParameters parameters;
        parameters.simd = GetParam();
        parameters.k = random.below(4) == 0 ? 1 : 1 + random.below(n + 5);
        if (random.below(4) == 0) parameters.radius = 0.01 * static_cast<double>(random.below(220));
        if (random.below(4) == 0) parameters.memory_limit = random.below(20000);
        TermParameters weighting;
        if (!of_counts(shape)) weighting.weighting = TermWeighting::given;
        Execution execution(3);
        const auto frequencies = document_frequencies(items.vectors(), execution);
        ASSERT_TRUE(frequencies.ok());
        const auto factors = term_factors(weighting, *frequencies, n);
        if (random.below(3) == 0) {
            parameters.metric = Metric::inner_product;
            if (parameters.radius < 9) parameters.radius *= -2;
        }
        SCOPED_TRACE("call " + std::to_string(call) + ", shape " +
                     std::to_string(static_cast<int>(shape)) + ", keys " +
                     std::to_string(static_cast<int>(key_shape)) + ", k " +
                     std::to_string(parameters.k));
        const auto answer = keyed_term_knn(parameters, factors, queries.vectors(), items.vectors(),
                                           match, excluded, execution);
        ASSERT_TRUE(answer.ok()) << answer.status().message();
        const auto found = rows_of(*answer);
        const PlainWeights of_queries(queries.texts(), factors), of_items(items.texts(), factors);
        ASSERT_EQ(found.size(), q);
        for (std::size_t query = 0; query < q; ++query) {
            PlainNeighbors wanted;
            for (std::uint32_t item = 0; item < n; ++item) {
                if (!match.match(query, item) || !excluded.differ(query, item)) continue;
                const auto distance =
                    plain_term_distance(parameters.metric, of_queries.rows[query],
                                        of_items.rows[item], of_queries.squares[query],
                                        of_items.squares[item]);
                if (distance && *distance <= parameters.radius)
                    wanted.emplace_back(item, *distance);
            }
            std::stable_sort(wanted.begin(), wanted.end(),
                             [](const auto& a, const auto& b) { return a.second < b.second; });
            wanted.resize(std::min(parameters.k, wanted.size()));
            ASSERT_EQ(found[query], rows_of(wanted)) << "query " << query;
        }
    }
}

TEST(KeyedTermKnn, RefusesWhatASearchRefuses) {
    RandomTexts random;
    const TextRows rows(random.texts(TextShape::zipf, 9, 5), ElementType::int32, 5);
    const std::vector<double> factors(5, 1.0), few(4, 1.0);
    const Keys keys(9), other(8);
    Execution execution(1);
    const auto code = [&](const std::vector<double>& some, const MatchKeys& match) {
        return keyed_term_knn({}, some, rows.vectors(), rows.vectors(), match, {}, execution)
            .status()
            .code();
    };
    EXPECT_EQ(code(factors, {keys, keys}), ErrorCode::ok);
    EXPECT_EQ(code(factors, {keys, other}), ErrorCode::invalid_argument);
    EXPECT_EQ(code(few, {keys, keys}), ErrorCode::invalid_argument);
    execution.request_stop();
    EXPECT_EQ(code(factors, {keys, keys}), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
