#include "cpp/thesaurus/word_similarity.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/on_each_simd.hpp"
#include "tests/support/plain_cooccurrences.hpp"
#include "tests/support/stops_soon.hpp"

namespace gputext {
namespace {

using testing::kEachSimd;
using testing::kSanitized;
using testing::list_of;
using testing::name_of_simd;
using testing::OnEachSimd;
using testing::plain_counts;
using testing::plain_neighbors;
using testing::plain_weights;
using testing::PlainCounts;
using testing::PlainList;
using testing::PlainStream;
using testing::random_stream;
using testing::RandomStrings;

WordFeatures features_of(const WeightParameters& parameters, const CooccurrenceShape& shape,
                         const PlainStream& stream) {
    Execution execution(2);
    const auto counts = count_cooccurrences(shape, stream.view(), std::size_t{1} << 30, execution);
    EXPECT_TRUE(counts.ok());
    auto features = weigh_features(parameters, *counts, execution);
    EXPECT_TRUE(features.ok());
    return std::move(*features);
}

/// Each feature of each word with a chance of one in `rarity`, and weights up to `most`.
WordFeatures random_features(RandomStrings& random, const CooccurrenceShape& shape,
                             std::size_t rarity, std::size_t most) {
    WordFeatures features;
    features.shape = shape;
    features.begins = {0};
    for (std::uint32_t word = 0; word < shape.words; ++word) {
        // Zipf's law here, too: some words have most features, some features most words.
        const std::size_t rare = rarity * (1 + random.below(1 + word / 4));
        for (std::uint32_t column = 0; column < shape.columns(); ++column) {
            if (random.below(column % 7 == 0 ? std::max<std::size_t>(1, rare / 8) : rare) != 0)
                continue;
            features.columns.push_back(column);
            features.weights.push_back(
                static_cast<std::uint16_t>(random.below(8) == 0 ? most : 1 + random.below(most)));
        }
        features.begins.push_back(features.columns.size());
    }
    return features;
}

class WordSimilarityOnEach : public OnEachSimd {
protected:
    Thesaurus run(SimilarityParameters parameters, const WordFeatures& features,
                  unsigned threads = 3) {
        parameters.simd = GetParam();
        Execution execution(threads);
        auto answer = word_similarities(parameters, features, execution);
        EXPECT_TRUE(answer.ok()) << answer.status().message();
        return answer.ok() ? std::move(*answer) : Thesaurus{};
    }

    void expect_plain_answer(const SimilarityParameters& parameters, const WordFeatures& features,
                             unsigned threads = 3) {
        const Thesaurus found = run(parameters, features, threads);
        ASSERT_EQ(found.begins.size(), features.shape.words + 1);
        for (std::uint32_t word = 0; word < features.shape.words; ++word) {
            const bool wanted = word >= parameters.first && word < parameters.end;
            ASSERT_EQ(list_of(found, word), wanted ? plain_neighbors(parameters.measure, features,
                                                                      word, parameters.top_k)
                                                   : PlainList{})
                << "word " << word;
        }
    }
};

INSTANTIATE_TEST_SUITE_P(Simd, WordSimilarityOnEach, kEachSimd, name_of_simd);

TEST_P(WordSimilarityOnEach, EqualsAPlainSearch) {
    RandomStrings random;
    for (int round = 0; round < testing::rounds(kSanitized ? 30 : 200); ++round) {
        CooccurrenceShape shape;
        shape.words = static_cast<std::uint32_t>(random.below(random.below(2) == 0 ? 6 : 150));
        shape.window = static_cast<std::uint32_t>(1 + random.below(3));
        shape.positions = random.below(3) != 0;
        SimilarityParameters parameters;
        parameters.measure = static_cast<WordMeasure>(random.below(3));
        parameters.top_k =
            static_cast<std::uint32_t>(random.below(4) == 0 ? 1000 : 1 + random.below(9));
        if (random.below(3) == 0) {
            parameters.first = static_cast<std::uint32_t>(random.below(shape.words + 5));
            parameters.end = parameters.first + static_cast<std::uint32_t>(random.below(60));
        }
        if (random.below(3) == 0) parameters.memory_limit = random.below(20000);
        WordFeatures features;
        if (random.below(2) == 0) {
            const std::size_t most[] = {1, 3, 6000, 40000, 65535};
            features = random_features(random, shape, 1 + random.below(40), most[random.below(5)]);
        } else {
            const WeightParameters weights{static_cast<WordWeight>(random.below(3)),
                                           random.below(2) == 0 ? 0 : 0.95,
                                           random.below(2) == 0 ? 0 : random.below(300)};
            features = features_of(weights, shape, random_stream(random, shape, 3000));
        }
        SCOPED_TRACE("round " + std::to_string(round));
        ASSERT_NO_FATAL_FAILURE(
            expect_plain_answer(parameters, features, 1 + static_cast<unsigned>(random.below(3))));
    }
}

/// Features are those of whole words as neighbors, in all relations: their number is rounded up.
TEST(WordSimilarity, KeepsFeaturesOfWholeWords) {
    RandomStrings random;
    const CooccurrenceShape shape{.words = 30, .window = 2};
    const PlainStream stream = random_stream(random, shape, 3000);
    ASSERT_EQ(shape.relations(), 4u);
    for (const std::uint64_t features : {1, 4, 5, 8, 9}) {
        const WordFeatures found = features_of({WordWeight::count, 0, features}, shape, stream);
        std::uint32_t neighbors = 0;
        for (const std::uint32_t column : found.columns)
            neighbors = std::max(neighbors, column % shape.words + 1);
        EXPECT_EQ(neighbors, (features + 3) / 4) << features;
    }
}

/// More words than are compared at a time.
TEST_P(WordSimilarityOnEach, NeitherMemoryNorThreadsNorRangesChangeTheAnswer) {
    RandomStrings random;
    const CooccurrenceShape shape{.words = kSanitized ? 1500u : 9000u, .window = 2};
    const PlainStream stream = random_stream(random, shape, kSanitized ? 50000 : 400000);
    for (const WordMeasure measure :
         {WordMeasure::lin, WordMeasure::cosine, WordMeasure::jaccard}) {
        const WordFeatures features = features_of({}, shape, stream);
        SimilarityParameters parameters{.measure = measure, .top_k = 30};
        const Thesaurus wanted = run(parameters, features);
        for (std::uint32_t word = 0; word < shape.words; word += shape.words / 12)
            ASSERT_EQ(list_of(wanted, word), plain_neighbors(measure, features, word, 30));
        const auto expect_equal = [&](const SimilarityParameters& changed, unsigned threads) {
            const Thesaurus found = run(changed, features, threads);
            for (std::uint32_t word = 0; word < shape.words; ++word)
                ASSERT_EQ(list_of(found, word), word >= changed.first && word < changed.end
                                                    ? list_of(wanted, word)
                                                    : PlainList{})
                    << "word " << word;
        };
        for (const std::size_t memory : {std::size_t{0}, std::size_t{3} << 20}) {
            if (memory == 0 && measure != WordMeasure::lin) continue;  // many parts, slow
            parameters.memory_limit = memory;
            ASSERT_NO_FATAL_FAILURE(expect_equal(parameters, memory == 0 ? 1 : 4));
        }
        parameters.first = shape.words / 3, parameters.end = shape.words / 2;
        ASSERT_NO_FATAL_FAILURE(expect_equal(parameters, 2));
    }
}

/// Equation 3.8 of the thesis on weights that were never rounded.
TEST(WordSimilarity, IsTheThesissToTheFixedPoint) {
    RandomStrings random;
    for (int round = 0; round < 40; ++round) {
        const CooccurrenceShape shape{.words = 40, .window = 2};
        const PlainStream stream = random_stream(random, shape, 3000);
        const WeightParameters parameters{WordWeight::lin, round % 2 == 0 ? 0 : 0.95};
        const PlainCounts counts = plain_counts(shape, stream);
        const auto weights = plain_weights(parameters, counts);
        const WordFeatures features = features_of(parameters, shape, stream);
        std::vector<std::map<std::pair<std::uint32_t, std::uint32_t>, long double>> rows(40);
        std::size_t i = 0;
        for (const auto& [triple, count] : counts) {
            const auto& [word, relation, neighbor] = triple;
            // What is less is no feature, and then the other word's weight does not count either.
            if (weights[i++] * 2 >= weight_unit(WordWeight::lin))
                rows[word][{relation, neighbor}] = weights[i - 1];
        }
        Execution execution(2);
        const auto found = word_similarities({.top_k = 40}, features, execution);
        ASSERT_TRUE(found.ok());
        for (std::uint32_t a = 0; a < 40; ++a) {
            std::vector<double> similarities(40);
            for (std::uint64_t n = found->begins[a]; n < found->begins[a + 1]; ++n)
                similarities[found->neighbors[n]] = found->similarities[n];
            for (std::uint32_t b = 0; b < 40; ++b) {
                if (a == b) continue;
                long double shared = 0, all = 0;
                for (const auto& [feature, weight] : rows[a]) {
                    all += weight;
                    if (rows[b].contains(feature)) shared += weight + rows[b][feature];
                }
                for (const auto& [feature, weight] : rows[b]) all += weight;
                // Each weight is off by half a unit.
                const auto terms = static_cast<long double>(rows[a].size() + rows[b].size());
                const long double off = terms * weight_unit(WordWeight::lin) / 2;
                const long double wanted = all == 0 ? 0 : shared / all;
                const long double error = all == 0 ? 1e-3L : 2 * off / std::max(off, all - off);
                ASSERT_NEAR(static_cast<double>(wanted), similarities[b],
                            static_cast<double>(error));
            }
        }
    }
}

/// Sums that no 32 bits hold.
TEST_P(WordSimilarityOnEach, WideSumsAreExact) {
    const CooccurrenceShape shape{.words = 400, .window = 100};
    WordFeatures features;
    features.shape = shape;
    features.begins = {0};
    for (std::uint32_t word = 0; word < 3; ++word) {
        for (std::uint32_t column = word; column < shape.columns(); ++column) {
            features.columns.push_back(column);
            features.weights.push_back(static_cast<std::uint16_t>(65535 - word));
        }
        features.begins.push_back(features.columns.size());
    }
    features.begins.resize(shape.words + 1, features.columns.size());
    for (const WordMeasure measure : {WordMeasure::lin, WordMeasure::cosine, WordMeasure::jaccard})
        for (const auto found = run({.measure = measure}, features);
             std::uint32_t word : {0, 1, 2, 3})
            ASSERT_EQ(list_of(found, word), plain_neighbors(measure, features, word, 20));
}

TEST(WordSimilarity, RefusesWhatCannotBeCompared) {
    Execution execution(2);
    const auto message = [&](const SimilarityParameters& parameters, const WordFeatures& features) {
        const auto answer = word_similarities(parameters, features, execution);
        EXPECT_EQ(answer.status().code(), ErrorCode::invalid_argument);
        return answer.status().message();
    };
    WordFeatures features;
    features.shape = {.words = 1};
    features.begins = {0, 0};
    EXPECT_EQ(message({.top_k = 0}, features), "top_k must be at least 1");
    features.begins = {0};
    EXPECT_EQ(message({}, features), "there must be a row of features for each word");
    // 65535^2 * 2^21.1 is above 2^53.
    features.shape = {.words = 11500, .window = 100};
    features.begins.resize(11501, features.shape.columns());
    features.columns.resize(features.shape.columns());
    for (std::uint32_t i = 0; i < features.columns.size(); ++i) features.columns[i] = i;
    features.weights.resize(features.columns.size(), 65535);
    EXPECT_EQ(message({.measure = WordMeasure::cosine}, features),
              "the squares of a word's weights add up to more than 2^53");
    EXPECT_TRUE(word_similarities({}, features, execution).ok());
}

TEST(WordSimilarity, StopsSoonAtAnyTime) {
    RandomStrings random;
    const CooccurrenceShape shape{.words = kSanitized ? 3000u : 30000u, .window = 3};
    const PlainStream stream = random_stream(random, shape, kSanitized ? 100000 : 3000000);
    const WordFeatures features = features_of({WordWeight::lin, 0}, shape, stream);
    for (const WordMeasure measure : {WordMeasure::lin, WordMeasure::cosine})
        for (const int time : {0, 5, 20, 60, 150, 500}) {
            SCOPED_TRACE(std::to_string(time) + " ms");
            testing::expect_stops_soon(
                [&](Execution& execution) {
                    return word_similarities({.measure = measure}, features, execution).status();
                },
                testing::after(time));
        }
}

}  // namespace
}  // namespace gputext
