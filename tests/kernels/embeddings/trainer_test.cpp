#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cpp/embeddings/word2vec.hpp"
#include "kernels/embeddings/detail/training_steps.hpp"
#include "kernels/embeddings/trainer.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/plain_training.hpp"

namespace gputext {
namespace {

using testing::RandomCorpus;

// ---- What the host can test ----

TEST(RowsOnDevice, HaveAPlaceForEachElement) {
    for (const std::uint32_t dimensions :
         {1u, 31u, 32u, 33u, 64u, 100u, 128u, 129u, 200u, 300u, 320u, 500u, 512u, 1000u, 1024u}) {
        std::vector<bool> taken(gpu::row_stride(dimensions));
        ASSERT_GE(taken.size(), dimensions);
        for (std::uint32_t element = 0; element < dimensions; ++element) {
            const std::uint32_t place = gpu::place_in_row(element, dimensions);
            ASSERT_LT(place, taken.size());
            ASSERT_FALSE(taken[place]);
            taken[place] = true;
        }
        EXPECT_GE(32 * gpu::elements_of_lane(dimensions), dimensions);
    }
}

TEST(WordTrainerBytes, GrowWithWhatIsAsked) {
    TrainerParameters parameters;
    const auto bytes = gpu::word_trainer_bytes(parameters, 62000, 21400000, 600000);
    EXPECT_LT(bytes.least, bytes.good);
    EXPECT_GT(bytes.least, 62000u * 2 * 2 * 4 * parameters.dimensions);
    EXPECT_LT(bytes.good, std::uint64_t{512} << 20);
    parameters.dimensions = 1024;
    EXPECT_GT(gpu::word_trainer_bytes(parameters, 62000, 21400000, 600000).least, bytes.good);
}

// ---- On a device ----

class WordTrainerOnDevice : public testing::RingTest {
protected:
    Result<std::unique_ptr<WordTrainer>> trainer(const TrainerParameters& parameters,
                                                 const WordSampling& sampling,
                                                 const TokenStream& tokens) {
        Execution execution(4);
        return gpu::word_trainer(parameters, sampling, tokens, work, ring(), execution);
    }

    /// Trains on a device and on the CPU, all parts of all epochs, and holds one against the other.
    void expect_same(const TrainingParameters& parameters, const RandomCorpus& corpus,
                     double sample, std::uint32_t parts = 1) {
        SCOPED_TRACE("model " + std::to_string(static_cast<int>(parameters.model)) + ", d " +
                     std::to_string(parameters.dimensions) + ", window " +
                     std::to_string(parameters.window) + ", negative " +
                     std::to_string(parameters.negative) + ", batch " +
                     std::to_string(parameters.batch) + ", replicas " +
                     std::to_string(parameters.replicas) + ", far " +
                     std::to_string(parameters.far_count) + ", tokens " +
                     std::to_string(corpus.numbers.size()));
        const std::size_t words = corpus.counts.size();
        const WordSampling sampling = word_sampling(corpus.counts, sample);
        std::vector<std::uint32_t> farthest(words * parameters.far_count);
        for (std::size_t i = 0; i < farthest.size(); ++i)
            farthest[i] = static_cast<std::uint32_t>(mix_bits(i) % words);
        auto on_device = trainer(parameters, sampling, corpus.stream());
        ASSERT_TRUE(on_device.ok()) << on_device.status().message();
        auto on_cpu = cpu_word_trainer(parameters, sampling, corpus.stream());
        ASSERT_TRUE(on_cpu.ok());
        TrainingModel start, found, expected;
        Execution starting(1);
        ASSERT_TRUE(start_vectors(parameters, words, start, starting).ok());
        // The outputs that a training begins with are 0, and so would be the contexts' steps.
        for (std::size_t i = 0; i < start.outputs.size(); ++i)
            start.outputs[i] = static_cast<float>(mix_bits(i) >> 40) * 0x1p-26f - 0.125f;
        Execution execution(8);
        std::uint64_t told = 0;
        TrainingCount device_count, cpu_count;
        ASSERT_TRUE((*on_device)->load(start).ok());
        ASSERT_TRUE((*on_cpu)->load(start).ok());
        for (std::uint32_t epoch = 0; epoch < parameters.epochs; ++epoch)
            for (std::uint32_t part = 0; part < parts; ++part)
                for (std::uint32_t replica = 0; replica < parameters.replicas; ++replica) {
                    TrainingPart of{epoch, replica, part, parts, {}};
                    if (epoch >= parameters.farthest_from) of.farthest = farthest;
                    const std::uint64_t before = execution.done();
                    Status status = (*on_device)->train(of, execution, device_count);
                    ASSERT_TRUE(status.ok()) << status.message();
                    told += execution.done() - before;
                    ASSERT_TRUE((*on_cpu)->train(of, execution, cpu_count).ok());
                }
        ASSERT_TRUE((*on_device)->store(found).ok());
        ASSERT_TRUE((*on_cpu)->store(expected).ok());
        ASSERT_EQ(differing(found.vectors, expected.vectors), 0u);
        ASSERT_EQ(differing(found.outputs, expected.outputs), 0u);
        if (device_count.windows > 0) {
            EXPECT_GT(differing(found.vectors, start.vectors), 0u);
        }
        EXPECT_EQ(device_count.tokens, corpus.numbers.size() * parameters.epochs);
        EXPECT_EQ(told, device_count.tokens);
        EXPECT_EQ(device_count.windows, cpu_count.windows);
        EXPECT_EQ(device_count.steps, cpu_count.steps);
        EXPECT_NEAR(device_count.loss, cpu_count.loss, 1e-4 * cpu_count.loss + 1e-6);
    }

    static std::size_t differing(const std::vector<float>& a, const std::vector<float>& b) {
        if (a.size() != b.size()) return SIZE_MAX;
        std::size_t count = 0;
        for (std::size_t i = 0; i < a.size(); ++i)
            count += std::bit_cast<std::uint32_t>(a[i]) != std::bit_cast<std::uint32_t>(b[i]);
        return count;
    }

private:
};

constexpr WordModel kModels[] = {WordModel::skipgram, WordModel::cbow};

TEST_F(WordTrainerOnDevice, GivesTheCpusBitsInAllDimensions) {
    const RandomCorpus corpus(1, 500, 6000);
    for (const WordModel model : kModels)
        for (const std::uint32_t dimensions :
             {1u, 31u, 32u, 50u, 64u, 96u, 100u, 150u, 200u, 224u, 300u, 320u, 400u, 1000u}) {
            TrainingParameters parameters;
            parameters.model = model;
            parameters.dimensions = dimensions;
            parameters.epochs = 2;
            parameters.batch = 256;
            parameters.learning_rate = 0.2f;
            ASSERT_NO_FATAL_FAILURE(expect_same(parameters, corpus, 1e-2));
        }
}

TEST_F(WordTrainerOnDevice, GivesTheCpusBitsInAllWindows) {
    const RandomCorpus corpus(2, 300, small() ? 500 : 3000, 60);
    for (const WordModel model : kModels)
        for (const std::uint32_t dimensions : {100u, 200u, 300u, 600u})
            for (const std::uint32_t window : {1u, 5u, 40u, 100u})
                for (const std::uint32_t negative : {1u, 5u, 6u, 64u}) {
                    if (dimensions == 600 && window * negative > 500) continue;
                    TrainingParameters parameters;
                    parameters.model = model;
                    parameters.dimensions = dimensions;
                    parameters.window = window;
                    parameters.negative = negative;
                    parameters.epochs = 1;
                    parameters.batch = 100;
                    parameters.learning_rate = 0.5f;
                    ASSERT_NO_FATAL_FAILURE(expect_same(parameters, corpus, 0));
                }
}

TEST_F(WordTrainerOnDevice, GivesTheCpusBitsInAllBatches) {
    const RandomCorpus corpus(3, 2000, small() ? 2000 : 20000);
    for (const WordModel model : kModels)
        for (const std::uint32_t batch : {1u, 2u, 133u, 1024u, 5000u, 100000u}) {
            if (small() && batch == 1) continue;
            TrainingParameters parameters;
            parameters.model = model;
            parameters.dimensions = 40;
            parameters.batch = batch;
            parameters.epochs = 1;
            ASSERT_NO_FATAL_FAILURE(expect_same(parameters, corpus, 1e-3));
        }
}

// More rows are met by a block than it has places for.
TEST_F(WordTrainerOnDevice, GivesTheCpusBitsInVeryLargeBatches) {
    const RandomCorpus corpus(4, small() ? 20000 : 700000, small() ? 20000 : 600000);
    for (const WordModel model : kModels) {
        TrainingParameters parameters;
        parameters.model = model;
        parameters.dimensions = 8;
        parameters.batch = 200000;
        parameters.epochs = 1;
        ASSERT_NO_FATAL_FAILURE(expect_same(parameters, corpus, 0));
    }
}

TEST_F(WordTrainerOnDevice, GivesTheCpusBitsOfReplicasAndParts) {
    const RandomCorpus corpus(5, 800, 9001);
    for (const WordModel model : kModels)
        for (const std::uint32_t replicas : {1u, 2u, 7u})
            for (const std::uint32_t parts : {1u, 3u}) {
                TrainingParameters parameters;
                parameters.model = model;
                parameters.dimensions = 64;
                parameters.batch = 128;
                parameters.epochs = 2;
                parameters.replicas = replicas;
                parameters.far_count = 5;
                parameters.farthest_from = 1;
                ASSERT_NO_FATAL_FAILURE(expect_same(parameters, corpus, 1e-2, parts));
            }
}

TEST_F(WordTrainerOnDevice, GivesTheCpusBitsOfFewTokens) {
    for (const std::size_t tokens : {0, 1, 2, 3, 10, 2047, 2048, 2049})
        for (const std::uint64_t mean_text : {std::uint64_t{1}, std::uint64_t{2}, UINT64_MAX}) {
            // One word that is nearly all there is stands beside itself.
            RandomCorpus corpus(6, 3, tokens, mean_text);
            for (std::uint64_t& count : corpus.counts) ++count;
            TrainingParameters parameters;
            parameters.dimensions = 10;
            parameters.batch = 32;
            parameters.epochs = 3;
            parameters.replicas = tokens % 2 == 0 ? 1 : 2;
            ASSERT_NO_FATAL_FAILURE(expect_same(parameters, corpus, 0.1));
        }
}

TEST_F(WordTrainerOnDevice, GivesTheCpusBitsWithoutResidentTokens) {
    const RandomCorpus corpus(7, 1000, small() ? 20000 : 300000);
    TrainingParameters parameters;
    parameters.dimensions = 20;
    parameters.epochs = 2;
    parameters.replicas = 2;
    const auto bytes = gpu::word_trainer_bytes(parameters, corpus.counts.size(),
                                               corpus.numbers.size(), corpus.numbers.size() / 5);
    work.bytes = bytes.least + (bytes.good - bytes.least) / 2;
    expect_same(parameters, corpus, 1e-2);
}

TEST_F(WordTrainerOnDevice, SaysHowMuchMemoryItNeeds) {
    const RandomCorpus corpus(8, 1000, 10000);
    const TrainingParameters parameters;
    const WordSampling sampling = word_sampling(corpus.counts, 0);
    work.bytes = 1 << 20;
    const auto refused = trainer(parameters, sampling, corpus.stream());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), ErrorCode::out_of_memory);
    EXPECT_NE(refused.status().message().find("1048576 may be taken"), std::string::npos);
}

TEST_F(WordTrainerOnDevice, RefusesWordsThatAreNone) {
    RandomCorpus corpus(9, 100, 1000);
    const WordSampling sampling = word_sampling(corpus.counts, 0);
    corpus.numbers[500] = 100;
    const auto refused = trainer(TrainingParameters(), sampling, corpus.stream());
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.status().code(), ErrorCode::invalid_argument);
}

// With the last sizes, a step would take seconds.
TEST_F(WordTrainerOnDevice, StopsSoon) {
    const RandomCorpus corpus(10, 20000, small() ? 20000 : 3000000, 1000);
    for (const std::uint32_t batch : {64u, 4096u, 1u << 20}) {
        TrainingParameters parameters;
        const bool large = batch > 4096;
        parameters.dimensions = large ? 1024 : 300;
        parameters.window = large ? 100 : 20;
        parameters.negative = large ? 64 : 20;
        parameters.batch = batch;
        const WordSampling sampling = word_sampling(corpus.counts, 0);
        auto made = trainer(parameters, sampling, corpus.stream());
        ASSERT_TRUE(made.ok());
        TrainingModel model;
        Execution execution(4);
        ASSERT_TRUE(start_vectors(parameters, corpus.counts.size(), model, execution).ok());
        ASSERT_TRUE((*made)->load(model).ok());
        TrainingCount count;
        using Clock = std::chrono::steady_clock;
        Clock::time_point asked;
        std::thread stopping([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(150));
            asked = Clock::now();
            execution.request_stop();
        });
        const Status status = (*made)->train({}, execution, count);
        const Clock::time_point ended = Clock::now();
        stopping.join();
        if (small()) continue;
        SCOPED_TRACE("batch " + std::to_string(batch));
        EXPECT_EQ(status.code(), ErrorCode::cancelled);
        EXPECT_LT(ended - asked, std::chrono::milliseconds(60));
        EXPECT_EQ(count.tokens == 0, large);
    }
}

TEST_F(WordTrainerOnDevice, TrainsAsEverAfterAStop) {
    const RandomCorpus corpus(11, 5000, small() ? 20000 : 600000);
    TrainingParameters parameters;
    parameters.window = 20;
    parameters.negative = 20;
    const WordSampling sampling = word_sampling(corpus.counts, 0);
    TrainingModel start, found[2];
    Execution starting(1);
    ASSERT_TRUE(start_vectors(parameters, corpus.counts.size(), start, starting).ok());
    auto made = trainer(parameters, sampling, corpus.stream());
    ASSERT_TRUE(made.ok());
    for (const int round : {0, 1}) {
        TrainingCount count;
        if (round == 1) {
            Execution stopped(4);
            std::thread stopping([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
                stopped.request_stop();
            });
            ASSERT_TRUE((*made)->load(start).ok());
            EXPECT_EQ((*made)->train({}, stopped, count).code(), ErrorCode::cancelled);
            stopping.join();
        }
        Execution execution(4);
        ASSERT_TRUE((*made)->load(start).ok());
        ASSERT_TRUE((*made)->train({}, execution, count).ok());
        ASSERT_TRUE((*made)->store(found[round]).ok());
    }
    EXPECT_EQ(differing(found[0].vectors, found[1].vectors), 0u);
    EXPECT_EQ(differing(found[0].outputs, found[1].outputs), 0u);
}

}  // namespace
}  // namespace gputext
