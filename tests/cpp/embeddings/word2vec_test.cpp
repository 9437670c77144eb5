#include "cpp/embeddings/word2vec.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <thread>

#include "tests/support/plain_training.hpp"

namespace gputext {
namespace {

using testing::PlainTraining;
using testing::RandomCorpus;

constexpr std::uint32_t kWords = 80;

TrainingParameters small_parameters() {
    TrainingParameters parameters;
    parameters.dimensions = 12;
    parameters.window = 3;
    parameters.batch = 32;
    parameters.epochs = 4;
    parameters.learning_rate = 0.1f;
    return parameters;
}

TrainingModel started(const TrainingParameters& parameters, unsigned threads = 1) {
    TrainingModel model;
    Execution execution(threads);
    EXPECT_TRUE(start_vectors(parameters, kWords, model, execution).ok());
    EXPECT_EQ(execution.done(), execution.total());
    return model;
}

/// By so many threads, each with a trainer.
TrainingModel trained_by(unsigned threads, const TrainingParameters& parameters,
                         const RandomCorpus& corpus) {
    const WordSampling sampling = word_sampling(corpus.counts, 0.01);
    Training training(parameters, kWords, corpus.numbers.size(), started(parameters));
    Execution execution(2);
    std::vector<std::thread> others;
    const auto take_part = [&] {
        auto trainer = cpu_word_trainer(parameters, sampling, corpus.stream());
        EXPECT_TRUE(
            training.take_part(**trainer, farthest_search(parameters, nearest_on_cpu), execution)
                .ok());
    };
    for (unsigned i = 1; i < threads; ++i) others.emplace_back(take_part);
    take_part();
    for (std::thread& other : others) other.join();
    EXPECT_EQ(training.count().tokens, parameters.epochs * corpus.numbers.size());
    return training.model();
}

TEST(Word2vec, FirstValuesAreSmallAndKeepWhatIsKnown) {
    TrainingParameters parameters = small_parameters();
    const TrainingModel model = started(parameters);
    double sum = 0;
    for (const float value : model.vectors) {
        EXPECT_LE(std::fabs(value), 0.5f / 12);
        sum += value;
    }
    EXPECT_NEAR(sum / (kWords * 12), 0, 0.005);
    EXPECT_EQ(model.outputs, std::vector<float>(kWords * 12));
    TrainingModel known{std::vector<float>(24, 3.0f), std::vector<float>(24, 4.0f)};
    Execution execution(2);
    ASSERT_TRUE(start_vectors(parameters, kWords, known, execution).ok());
    for (std::size_t i = 0; i < known.vectors.size(); ++i) {
        EXPECT_EQ(known.vectors[i], i < 24 ? 3.0f : model.vectors[i]);
        EXPECT_EQ(known.outputs[i], i < 24 ? 4.0f : 0.0f);
    }
    parameters.seed = 2;
    EXPECT_NE(started(parameters).vectors, model.vectors);
    parameters.dimensions = 1000;
    const std::vector<float> large = started(parameters).vectors;
    for (const unsigned threads : {2u, 5u}) EXPECT_EQ(started(parameters, threads).vectors, large);
}

TEST(Word2vec, OneReplicaIsThePlainFormOfAllEpochs) {
    const RandomCorpus corpus(5, kWords, 3000);
    const TrainingParameters parameters = small_parameters();
    TrainingModel expected = started(parameters);
    const WordSampling sampling = word_sampling(corpus.counts, 0.01);
    PlainTraining plain(parameters, sampling, corpus.stream(), expected);
    for (std::uint32_t epoch = 0; epoch < parameters.epochs; ++epoch)
        plain.train({epoch, 0, 0, 1, {}});
    const TrainingModel model = trained_by(1, parameters, corpus);
    EXPECT_EQ(model.vectors, expected.vectors);
    EXPECT_EQ(model.outputs, expected.outputs);
}

TEST(Word2vec, ReplicasAreAveragedWhoeverTrainsThem) {
    const RandomCorpus corpus(6, kWords, 4000);
    TrainingParameters parameters = small_parameters();
    parameters.replicas = 4;
    parameters.average_every = 300;
    const WordSampling sampling = word_sampling(corpus.counts, 0.01);
    TrainingModel expected = started(parameters);
    const std::uint32_t parts = 4000 / 4 / 300 + 1;
    for (std::uint32_t epoch = 0; epoch < parameters.epochs; ++epoch)
        for (std::uint32_t part = 0; part < parts; ++part) {
            std::vector<TrainingModel> replicas(4, expected);
            for (std::uint32_t replica = 0; replica < 4; ++replica)
                PlainTraining(parameters, sampling, corpus.stream(), replicas[replica])
                    .train({epoch, replica, part, parts, {}});
            for (auto rows : {&TrainingModel::vectors, &TrainingModel::outputs})
                for (std::size_t i = 0; i < (expected.*rows).size(); ++i)
                    (expected.*rows)[i] = (((replicas[0].*rows)[i] + (replicas[1].*rows)[i]) +
                                           (replicas[2].*rows)[i] + (replicas[3].*rows)[i]) /
                                          4;
        }
    for (const unsigned threads : {1u, 2u, 4u, 6u}) {
        const TrainingModel model = trained_by(threads, parameters, corpus);
        EXPECT_EQ(model.vectors, expected.vectors) << threads;
        EXPECT_EQ(model.outputs, expected.outputs) << threads;
    }
}

/// Its model is the loaded one plus noise of each replica and part.
class NoiseTrainer final : public WordTrainer {
public:
    Status load(const TrainingModel& model) override {
        model_ = model;
        return {};
    }
    Status train(const TrainingPart& part, Execution&, TrainingCount&) override {
        add_noise(part, model_);
        return {};
    }
    Status store(TrainingModel& model) override {
        if (!model.vectors.empty() && !model.outputs.empty()) ++stored_again_;
        model = model_;
        return {};
    }
    /// Models that were stored where one had been before.
    int stored_again() const { return stored_again_; }

    static void add_noise(const TrainingPart& part, TrainingModel& model) {
        const std::uint64_t key = random_key(1, part.replica, part.part);
        for (auto rows : {&TrainingModel::vectors, &TrainingModel::outputs})
            for (std::size_t i = 0; i < (model.*rows).size(); ++i)
                (model.*rows)[i] += static_cast<float>(random_bits(key, i) >> 40) * 0x1p-24f;
    }

private:
    TrainingModel model_;
    int stored_again_ = 0;
};

TEST(Word2vec, AveragesLargeModelsByAllThreadsInTheMemoryOfThoseBefore) {
    TrainingParameters parameters = small_parameters();
    parameters.dimensions = 1000;  // values of several tasks
    parameters.replicas = 3;
    parameters.epochs = 1;
    parameters.average_every = 10;
    TrainingModel expected = started(parameters);
    constexpr std::uint32_t parts = 4;
    Training training(parameters, kWords, 3 * 10 * (parts - 1), expected);
    for (std::uint32_t part = 0; part < parts; ++part) {
        std::vector<TrainingModel> replicas(3, expected);
        for (std::uint32_t replica = 0; replica < 3; ++replica)
            NoiseTrainer::add_noise({0, replica, part, parts, {}}, replicas[replica]);
        for (auto rows : {&TrainingModel::vectors, &TrainingModel::outputs})
            for (std::size_t i = 0; i < (expected.*rows).size(); ++i)
                (expected.*rows)[i] =
                    ((replicas[0].*rows)[i] + (replicas[1].*rows)[i] + (replicas[2].*rows)[i]) / 3;
    }
    NoiseTrainer trainer;
    Execution execution(3);
    ASSERT_TRUE(training.take_part(trainer, {}, execution).ok());
    EXPECT_EQ(training.model().vectors, expected.vectors);
    EXPECT_EQ(training.model().outputs, expected.outputs);
    EXPECT_EQ(trainer.stored_again(), 3 * (parts - 1));
}

TEST(Word2vec, FarthestWordsAreThoseOfTheSmallestCosine) {
    TrainingParameters parameters = small_parameters();
    parameters.far_count = 5;
    const TrainingModel model = started(parameters);
    Execution execution(1);
    std::vector<std::uint32_t> farthest;
    ASSERT_TRUE(farthest_search(parameters, nearest_on_cpu)(model, execution, farthest).ok());
    ASSERT_EQ(farthest.size(), kWords * 5);
    const auto cosine = [&](std::size_t a, std::size_t b) {
        double ab = 0, aa = 0, bb = 0;
        for (std::size_t e = 0; e < 12; ++e) {
            const double x = model.vectors[a * 12 + e], y = model.vectors[b * 12 + e];
            ab += x * y, aa += x * x, bb += y * y;
        }
        return ab / std::sqrt(aa * bb);
    };
    for (std::size_t word = 0; word < kWords; ++word) {
        std::vector<double> all;
        for (std::size_t other = 0; other < kWords; ++other) all.push_back(cosine(word, other));
        std::sort(all.begin(), all.end());
        for (std::size_t i = 0; i < 5; ++i)
            EXPECT_NEAR(cosine(word, farthest[word * 5 + i]), all[i], 1e-9);
    }
}

TEST(Word2vec, SearchesForFarthestWordsOnceAnEpochFromTheOneThatIsSaid) {
    const RandomCorpus corpus(8, kWords, 2000);
    TrainingParameters parameters = small_parameters();
    const TrainingModel without = trained_by(1, parameters, corpus);
    parameters.far_count = 5;
    parameters.farthest_from = 4;
    EXPECT_EQ(trained_by(1, parameters, corpus).vectors, without.vectors);
    parameters.farthest_from = 2;
    parameters.replicas = 3;
    const TrainingModel with = trained_by(1, parameters, corpus);
    EXPECT_NE(with.vectors, without.vectors);
    EXPECT_EQ(trained_by(3, parameters, corpus).vectors, with.vectors);

    const WordSampling sampling = word_sampling(corpus.counts, 0.01);
    Training training(parameters, kWords, corpus.numbers.size(), started(parameters));
    auto trainer = cpu_word_trainer(parameters, sampling, corpus.stream());
    int searches = 0;
    Execution execution(1);
    const FarthestSearch search = [&](const TrainingModel& model, Execution& on,
                                      std::vector<std::uint32_t>& farthest) {
        ++searches;
        return farthest_search(parameters, nearest_on_cpu)(model, on, farthest);
    };
    ASSERT_TRUE(training.take_part(**trainer, search, execution).ok());
    EXPECT_EQ(searches, 2);
    EXPECT_EQ(training.hub().of, 2 * kWords);
    EXPECT_GE(training.hub().lists, 2 * 5);
}

/// Fails at its third part, by an error or an exception.
class FailingTrainer final : public WordTrainer {
public:
    FailingTrainer(std::unique_ptr<WordTrainer> inner, bool throws)
        : inner_(std::move(inner)), throws_(throws) {}
    Status load(const TrainingModel& model) override { return inner_->load(model); }
    Status train(const TrainingPart& part, Execution& execution, TrainingCount& count) override {
        Status status = inner_->train(part, execution, count);
        if (++parts_ != 3) return status;
        if (throws_) throw std::bad_alloc();
        return Status::out_of_memory();
    }
    Status store(TrainingModel& model) override { return inner_->store(model); }

private:
    std::unique_ptr<WordTrainer> inner_;
    bool throws_;
    int parts_ = 0;
};

TEST(Word2vec, WhatFailsIsTakenAgain) {
    const RandomCorpus corpus(9, kWords, 3000);
    TrainingParameters parameters = small_parameters();
    parameters.replicas = 2;
    const TrainingModel expected = trained_by(1, parameters, corpus);
    const WordSampling sampling = word_sampling(corpus.counts, 0.01);
    for (const bool throws : {false, true}) {
        Training training(parameters, kWords, corpus.numbers.size(), started(parameters));
        Execution execution(1);
        auto inner = cpu_word_trainer(parameters, sampling, corpus.stream());
        FailingTrainer failing(std::move(*inner), throws);
        EXPECT_EQ(training.take_part(failing, {}, execution).code(), ErrorCode::out_of_memory);
        auto trainer = cpu_word_trainer(parameters, sampling, corpus.stream());
        ASSERT_TRUE(training.take_part(**trainer, {}, execution).ok());
        EXPECT_EQ(training.model().vectors, expected.vectors);
        // What was lost does not count twice.
        EXPECT_EQ(execution.done(), execution.total());
    }
}

TEST(Word2vec, GoesOnInOtherThreadsWhenATrainerFails) {
    const RandomCorpus corpus(9, kWords, 3000);
    TrainingParameters parameters = small_parameters();
    parameters.replicas = 3;
    parameters.epochs = 20;
    parameters.average_every = 200;
    const TrainingModel expected = trained_by(1, parameters, corpus);
    const WordSampling sampling = word_sampling(corpus.counts, 0.01);
    for (const bool throws : {false, true}) {
        Training training(parameters, kWords, corpus.numbers.size(), started(parameters));
        Status failed, done;
        std::thread failing([&] {
            auto inner = cpu_word_trainer(parameters, sampling, corpus.stream());
            FailingTrainer trainer(std::move(*inner), throws);
            Execution execution(1);
            failed = training.take_part(trainer, {}, execution);
        });
        Execution execution(1);
        auto trainer = cpu_word_trainer(parameters, sampling, corpus.stream());
        done = training.take_part(**trainer, {}, execution);
        failing.join();
        EXPECT_EQ(failed.code(), ErrorCode::out_of_memory);
        EXPECT_TRUE(done.ok()) << done.message();
        EXPECT_EQ(training.model().vectors, expected.vectors);
        EXPECT_EQ(training.model().outputs, expected.outputs);
        EXPECT_EQ(training.count().tokens, execution.total());
        EXPECT_LE(execution.done(), execution.total());
    }
}

TEST(Word2vec, RefusesWhatIsOutOfRange) {
    const auto refused = [](auto change, std::uint64_t words = kWords) {
        TrainingParameters parameters = small_parameters();
        change(parameters);
        return check_training(parameters, words).code() == ErrorCode::invalid_argument;
    };
    EXPECT_TRUE(check_training(small_parameters(), kWords).ok());
    EXPECT_TRUE(refused([](auto& p) { p.dimensions = 0; }));
    EXPECT_TRUE(refused([](auto& p) { p.dimensions = 1025; }));
    EXPECT_TRUE(refused([](auto& p) { p.window = 101; }));
    EXPECT_TRUE(refused([](auto& p) { p.negative = 0; }));
    EXPECT_TRUE(refused([](auto& p) { p.epochs = 0; }));
    EXPECT_TRUE(refused([](auto& p) { p.replicas = 0; }));
    EXPECT_TRUE(refused([](auto& p) { p.batch = 0; }));
    EXPECT_TRUE(refused([](auto& p) { p.learning_rate = 0; }));
    EXPECT_TRUE(refused([](auto& p) { p.learning_rate = std::nanf(""); }));
    EXPECT_TRUE(refused([](auto& p) { p.far_count = kWords; }));
    EXPECT_TRUE(refused([](auto&) {}, 0));
}

TEST(Word2vec, NeighborsOfAWordAreWordsOfItsKind) {
    // Words 0 .. 39 stand only beside one another, and so do 40 .. 79.
    std::vector<std::uint32_t> numbers, positions;
    std::uint32_t position = 0;
    for (std::uint64_t text = 0; text < 2000; ++text) {
        for (std::uint64_t i = 0; i < 8; ++i) {
            numbers.push_back(
                static_cast<std::uint32_t>(text % 2 * 40 + mix_bits(text * 8 + i) % 40));
            positions.push_back(position++);
        }
        position += 101;
    }
    std::vector<std::uint64_t> counts(kWords);
    for (const std::uint32_t number : numbers) ++counts[number];
    TrainingParameters parameters = small_parameters();
    for (const WordModel model : {WordModel::skipgram, WordModel::cbow}) {
        parameters.model = model;
        parameters.epochs = 20;
        const WordSampling sampling = word_sampling(counts, 0);
        Training training(parameters, kWords, numbers.size(), started(parameters));
        auto trainer = cpu_word_trainer(parameters, sampling, {numbers, positions});
        Execution execution(1);
        ASSERT_TRUE(training.take_part(**trainer, {}, execution).ok());
        KnnParameters search;
        search.k = 2;  // itself and another
        Vectors items;
        items.rows = kWords;
        items.dimensions = 12;
        items.elements = training.model().vectors.data();
        const auto nearest = knn(search, items, items, {}, execution);
        ASSERT_TRUE(nearest.ok());
        int alike = 0;
        for (std::uint32_t word = 0; word < kWords; ++word)
            alike += word / 40 == nearest->items[2 * word + 1] / 40;
        EXPECT_GE(alike, 78);
    }
}

}  // namespace
}  // namespace gputext
