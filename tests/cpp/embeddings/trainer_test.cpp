#include "cpp/embeddings/trainer.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cpp/embeddings/detail/logistic.hpp"
#include "cpp/embeddings/word2vec.hpp"
#include "tests/support/plain_training.hpp"

namespace gputext {
namespace {

using testing::PlainTraining;
using testing::RandomCorpus;

// ---- Parts of it ----

TEST(Logistic, IsOneOverOnePlusExp) {
    for (int i = -100000; i <= 100000; ++i) {
        const float x = static_cast<float>(i) * 1e-3f;
        const double expected = 1 / (1 + std::exp(-static_cast<double>(x)));
        const double lowest = 1 / (1 + std::exp(80.0));
        ASSERT_NEAR(logistic(x), std::max(expected, lowest), std::max(expected, lowest) * 0x1p-21)
            << x;
    }
    EXPECT_EQ(logistic(0), 0.5f);
    EXPECT_EQ(logistic(INFINITY), 1);
    for (const float x : {-INFINITY, std::nanf("")}) {
        EXPECT_GE(logistic(x), 0);
        EXPECT_LE(logistic(x), 1);
    }
}

TEST(WordSampling, KeepsAsManyAsItSays) {
    const std::vector<std::uint64_t> counts{900000, 90000, 9990, 10, 0};
    const WordSampling sampling = word_sampling(counts, 1e-3);
    for (std::size_t word = 0; word < 4; ++word) {
        const double ratio = 1e-3 * 1e6 / static_cast<double>(counts[word]);
        const double kept = std::min(1.0, std::sqrt(ratio) + ratio);
        EXPECT_NEAR((sampling.keep[word] + 1.0) * 0x1p-32, kept, 1e-9);
    }
    EXPECT_EQ(sampling.keep[4], UINT32_MAX);
    for (const std::uint32_t keep : word_sampling(counts, 0).keep) EXPECT_EQ(keep, UINT32_MAX);
}

TEST(WordSampling, DrawsByCountsToThePowerOfThreeQuarters) {
    const std::vector<std::uint64_t> counts{1000000, 50000, 50000, 1234, 17, 1, 0};
    const WordSampling sampling = word_sampling(counts, 0);
    std::vector<double> drawn(counts.size());
    double all = 0;
    for (std::size_t place = 0; place < counts.size(); ++place) {
        const double own = (sampling.own[place] + 1.0) * 0x1p-32;
        drawn[place] += own;
        drawn[sampling.other[place]] += 1 - own;
        all += std::pow(static_cast<double>(counts[place]), 0.75);
    }
    for (std::size_t word = 0; word < counts.size(); ++word)
        EXPECT_NEAR(drawn[word] / static_cast<double>(counts.size()),
                    std::pow(static_cast<double>(counts[word]), 0.75) / all, 1e-8);
    std::vector<int> times(counts.size());
    for (std::uint64_t i = 0; i < 100000; ++i) ++times[draw_word(sampling, random_bits(3, i))];
    EXPECT_NEAR(times[0], 1e5 * std::pow(1e6, 0.75) / all, 500);
}

// ---- Against the plain form ----

struct Shape {
    WordModel model;
    std::uint32_t dimensions, window, negative, batch, replicas, parts, far;
};

void PrintTo(const Shape& s, std::ostream* out) {
    *out << (s.model == WordModel::cbow ? "cbow" : "skipgram") << " d" << s.dimensions << " w"
         << s.window << " n" << s.negative << " b" << s.batch << " s" << s.replicas << " p"
         << s.parts << " f" << s.far;
}

class Trainer : public ::testing::TestWithParam<Shape> {};

TEST_P(Trainer, GivesThePlainFormsBits) {
    const Shape& shape = GetParam();
    const RandomCorpus corpus(shape.dimensions + shape.window, 60, 700);
    TrainingParameters parameters;
    parameters.model = shape.model;
    parameters.dimensions = shape.dimensions;
    parameters.window = shape.window;
    parameters.negative = shape.negative;
    parameters.batch = shape.batch;
    parameters.replicas = shape.replicas;
    parameters.epochs = 2;
    parameters.learning_rate = 0.2f;
    parameters.seed = 42;
    const WordSampling sampling = word_sampling(corpus.counts, 0.05);
    std::vector<std::uint32_t> farthest(60 * shape.far);
    for (std::size_t i = 0; i < farthest.size(); ++i)
        farthest[i] = static_cast<std::uint32_t>(mix_bits(i) % 60);

    TrainingModel expected;
    Execution starting(1);
    ASSERT_TRUE(start_vectors(parameters, 60, expected, starting).ok());
    const TrainingModel start = expected;
    PlainTraining plain(parameters, sampling, corpus.stream(), expected);
    std::vector<TrainingPart> parts;
    for (std::uint32_t epoch = 0; epoch < 2; ++epoch)
        for (std::uint32_t part = 0; part < shape.parts; ++part)
            for (std::uint32_t replica = 0; replica < shape.replicas; ++replica)
                parts.push_back({epoch, replica, part, shape.parts, farthest});
    for (const TrainingPart& part : parts) plain.train(part);
    EXPECT_NE(expected.vectors, start.vectors);

    for (const Simd simd : {Simd::portable, Simd::avx2, Simd::avx512})
        for (const unsigned threads : {1u, 3u}) {
            if (!simd_available(simd)) continue;
            Execution execution(threads);
            auto trainer = cpu_word_trainer(parameters, sampling, corpus.stream(), simd);
            ASSERT_TRUE(trainer.ok());
            ASSERT_TRUE((*trainer)->load(start).ok());
            TrainingCount count;
            for (const TrainingPart& part : parts)
                ASSERT_TRUE((*trainer)->train(part, execution, count).ok());
            TrainingModel trained;
            ASSERT_TRUE((*trainer)->store(trained).ok());
            EXPECT_EQ(trained.vectors, expected.vectors) << simd_name(simd) << ' ' << threads;
            EXPECT_EQ(trained.outputs, expected.outputs) << simd_name(simd) << ' ' << threads;
            EXPECT_EQ(count.tokens, 2 * corpus.numbers.size());
            EXPECT_GT(count.windows, 0);
            EXPECT_GT(count.loss, 0);
        }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Trainer,
                         ::testing::Values(Shape{WordModel::skipgram, 100, 5, 5, 16, 1, 1, 0},
                                           Shape{WordModel::cbow, 200, 10, 5, 16, 1, 1, 0},
                                           Shape{WordModel::skipgram, 1, 1, 1, 1, 1, 1, 0},
                                           Shape{WordModel::skipgram, 31, 2, 3, 1000, 1, 1, 5},
                                           Shape{WordModel::cbow, 32, 100, 64, 256, 2, 3, 7},
                                           Shape{WordModel::skipgram, 33, 5, 5, 300, 3, 1, 0},
                                           Shape{WordModel::cbow, 5, 1, 1, 1 << 20, 1, 2, 1}));

TEST(Trainer, StopsBetweenSteps) {
    const RandomCorpus corpus(1, 50, 20000);
    TrainingParameters parameters;
    parameters.batch = 4;
    const WordSampling sampling = word_sampling(corpus.counts, 0);
    auto trainer = cpu_word_trainer(parameters, sampling, corpus.stream());
    ASSERT_TRUE(trainer.ok());
    TrainingModel model;
    Execution execution(2);
    ASSERT_TRUE(start_vectors(parameters, 50, model, execution).ok());
    ASSERT_TRUE((*trainer)->load(model).ok());
    execution.request_stop();
    TrainingCount count;
    EXPECT_EQ((*trainer)->train({}, execution, count).code(), ErrorCode::cancelled);
    EXPECT_EQ(count.windows, 0);
}

TEST(Trainer, RefusesWordsThatAreNotInTheVocabulary) {
    const RandomCorpus corpus(1, 50, 200);
    const std::vector<std::uint64_t> counts(10, 1);
    const auto trainer = cpu_word_trainer({}, word_sampling(counts, 0), corpus.stream());
    EXPECT_EQ(trainer.status().code(), ErrorCode::invalid_argument);
}

TEST(Trainer, HasNothingToDoWithoutEntries) {
    const std::vector<std::uint64_t> counts(10, 1);
    const WordSampling sampling = word_sampling(counts, 0);
    auto trainer = cpu_word_trainer({}, sampling, {});
    ASSERT_TRUE(trainer.ok());
    TrainingModel model;
    Execution execution(1);
    ASSERT_TRUE(start_vectors({}, 10, model, execution).ok());
    ASSERT_TRUE((*trainer)->load(model).ok());
    TrainingCount count;
    EXPECT_TRUE((*trainer)->train({}, execution, count).ok());
    TrainingModel trained;
    ASSERT_TRUE((*trainer)->store(trained).ok());
    EXPECT_EQ(trained.vectors, model.vectors);
}

}  // namespace
}  // namespace gputext
