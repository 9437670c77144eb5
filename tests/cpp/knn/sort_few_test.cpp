#include "cpp/knn/nearest_lists.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

/// Distances of both signs, of which so many are different, and infinity; some candidates twice.
std::vector<Candidate> random_candidates(std::mt19937_64& generator, std::size_t count,
                                         std::uint32_t distances) {
    std::vector<Candidate> list;
    while (list.size() < count) {
        const auto item = static_cast<std::uint32_t>(generator() % 1000);
        const auto number = static_cast<double>(generator() % distances);
        const double distance = generator() % 50 == 0 ? std::numeric_limits<double>::infinity()
                                                      : number - distances / 2.0;
        list.push_back({distance, item, item / 2});
        if (generator() % 10 == 0 && list.size() < count) list.push_back(list.back());
    }
    std::shuffle(list.begin(), list.end(), generator);
    return list;
}

TEST(SortFew, SortsAsASortDoes) {
    std::mt19937_64 generator(testing::seed());
    for (const Simd simd : {Simd::avx2, Simd::avx512, Simd::bfloat16, Simd::amx}) {
        if (!simd_available(simd)) continue;
        for (std::size_t count = 0; count <= kFewCandidates; ++count)
            for (const std::uint32_t distances : {1u, 7u, 1000000000u}) {
                SCOPED_TRACE(::testing::Message()
                             << simd_name(simd) << ", " << count << " candidates, " << distances
                             << " distances, seed " << testing::seed());
                std::vector<Candidate> list = random_candidates(generator, count, distances);
                std::vector<Candidate> wanted = list;
                std::sort(wanted.begin(), wanted.end());
                ASSERT_TRUE(sort_few(list, simd));
                for (std::size_t i = 0; i < count; ++i) {
                    ASSERT_EQ(list[i].distance, wanted[i].distance) << i;
                    ASSERT_EQ(list[i].item, wanted[i].item) << i;
                    ASSERT_EQ(list[i].item_class, wanted[i].item_class) << i;
                }
            }
    }
}

TEST(SortFew, LeavesManyAndNarrowVectorsToASort) {
    std::mt19937_64 generator(testing::seed());
    std::vector<Candidate> list = random_candidates(generator, kFewCandidates + 1, 1000);
    EXPECT_FALSE(sort_few(list, best_simd()));
    list.resize(2);
    EXPECT_FALSE(sort_few(list, Simd::portable));
}

}  // namespace
}  // namespace gputext
