#include "cpp/embeddings/word2vec.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gputext {
namespace {

TEST(TrainingRun, TakesAsManyWindowsAsTheTextsAreWorth) {
    EXPECT_EQ(usual_batch(0, 1), 4u);
    EXPECT_EQ(usual_batch(100'000, 1), 50u);
    EXPECT_EQ(usual_batch(100'000, 2), 25u);
    EXPECT_EQ(usual_batch(21'400'000, 1), 4096u);
    EXPECT_EQ(usual_batch(21'400'000, 8), 1337u);
    EXPECT_EQ(usual_batch(UINT64_MAX, 1), 4096u);
    TrainingParameters parameters;
    for (const WordModel model : {WordModel::skipgram, WordModel::cbow}) {
        parameters.learning_rate = usual_learning_rate(model);
        EXPECT_TRUE(check_training(parameters, 10).ok());
    }
}

TEST(TrainingRun, ShowsHowFarItIs) {
    std::vector<std::uint32_t> words, positions;
    std::vector<std::uint64_t> counts(10);
    for (std::uint32_t i = 0; i < 3000; ++i) {
        words.push_back(i * i % 7 + i % 3);
        positions.push_back(i + i / 10 * 200);
        ++counts[words.back()];
    }
    for (const std::uint32_t replicas : {1u, 3u})
        for (const std::uint32_t far_count : {0u, 2u}) {
            TrainingParameters parameters;
            parameters.dimensions = 5;
            parameters.epochs = 4;
            parameters.replicas = replicas;
            parameters.batch = 16;
            parameters.far_count = far_count;
            parameters.farthest_from = 2;
            parameters.average_every = 400;
            TrainingRun run({parameters, 0, {words, positions}, counts, {}});
            Execution execution(2);
            ASSERT_TRUE(run.prepare(execution).ok());
            EXPECT_EQ(execution.epoch(), 0u);
            EXPECT_TRUE(std::isnan(execution.loss()));
            ASSERT_TRUE(run.run_on_cpu(execution).ok());
            EXPECT_STREQ(execution.phase(), "training");
            EXPECT_EQ(execution.total(), 4 * words.size());
            EXPECT_EQ(execution.done(), execution.total());
            EXPECT_EQ(execution.epoch(), 4u);
            EXPECT_TRUE(execution.loss() > 0.1 && execution.loss() < std::log(2.0));
            EXPECT_EQ(run.hub().of, far_count > 0 ? 2 * counts.size() : 0);
            // There is nothing left to do.
            EXPECT_TRUE(run.run_on_cpu(execution).ok());
            EXPECT_EQ(execution.done(), execution.total());
        }
}

TEST(TrainingRun, EndsWhenItIsToldSo) {
    const std::vector<std::uint32_t> words{0, 1, 0}, positions{1, 2, 3};
    const std::vector<std::uint64_t> counts{2, 1};
    TrainingRun run({{}, 0, {words, positions}, counts, {}});
    Execution execution(1);
    ASSERT_TRUE(run.prepare(execution).ok());
    execution.request_stop();
    EXPECT_EQ(run.prepare(execution).code(), ErrorCode::cancelled);
    EXPECT_EQ(run.run_on_cpu(execution).code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
