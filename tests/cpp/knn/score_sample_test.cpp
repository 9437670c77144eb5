#include "cpp/knn/detail/score_sample.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace gputext {
namespace {

TEST(SamplePlan, IsMadeWhereItPays) {
    const auto plan = [](std::size_t items, std::size_t k) {
        return plan_sample(items, k, 41, 4 * k + 256, 100000);
    };
    for (const std::size_t k : {1, 20, 100, 1000}) {
        const SamplePlan of_many = plan(20000, k);
        ASSERT_GT(of_many.items, 0u) << k;
        EXPECT_LE(of_many.items, 100000u / 41);
        const double share = static_cast<double>(of_many.items) / 20000;
        EXPECT_GT(of_many.rank, static_cast<double>(k) * share);
        EXPECT_LE(of_many.rank / share, static_cast<double>(4 * k + 256));
    }
    EXPECT_EQ(plan(2000, 20).items, 0u);      // too few for a sample
    EXPECT_EQ(plan(20000, 15000).items, 0u);  // nearly all are wanted
    EXPECT_EQ(plan(10000000, 20).items, 0u);  // a sample tells too little
}

TEST(GroupMinima, TellAboutHowManyScoresAreBelow) {
    std::mt19937_64 generator(7);
    std::uniform_real_distribution<float> uniform(0, 1000);
    std::vector<float> scores(1000);
    double sum = 0, counts = 0;
    constexpr int times = 200;
    for (int time = 0; time < times; ++time) {
        for (float& score : scores) score = uniform(generator);
        GroupMinima<float> minima;
        minima.clear();
        // Two pieces of which each bound is one more or one less than the score.
        const FilterSpace::Bound bound{0, 1};
        minima.add({scores.data(), 600}, bound);
        minima.add({scores.data() + 600, 400}, bound);
        sum += minima.most(20);
        counts += minima.count_up_to(24);
    }
    EXPECT_NEAR(sum / times, 21, 1.5);     // the 20th least score is about 20
    EXPECT_NEAR(counts / times, 25, 1.5);  // of lower bounds up to 24
}

TEST(GroupMinima, KnowNothingOfScoresThatAreNearlyAllBelow) {
    GroupMinima<float> minima;
    minima.clear();
    const std::vector<float> scores(300, 5);
    minima.add(scores, {0, 1});
    EXPECT_EQ(minima.most(3), 6);
    EXPECT_EQ(minima.count_up_to(3.9), 0);
    EXPECT_TRUE(std::isinf(minima.count_up_to(4)));
}

}  // namespace
}  // namespace gputext
