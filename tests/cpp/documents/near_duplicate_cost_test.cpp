// What the modes are estimated to take, and which comparison comes first.

#include "cpp/documents/near_duplicate_cost.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace gputext {
namespace {

std::vector<Extent> documents(std::size_t count, std::uint64_t size) {
    return std::vector<Extent>(count, {0, size});
}

NearDuplicateSeconds estimate(std::size_t count, std::uint64_t size, double threshold = 0.05,
                              bool signatures_given = false) {
    return estimate_near_duplicates(documents(count, size), threshold, signatures_given);
}

TEST(NearDuplicateCost, NothingTakesNothing) {
    const NearDuplicateSeconds seconds = estimate(0, 0);
    EXPECT_EQ(seconds.exact, 0);
    EXPECT_EQ(seconds.ctph, 0);
}

// docs/near-duplicates.md, 19,997 posts of 2.3 KB: the estimate is right to a factor of two.
TEST(NearDuplicateCost, PostsTakeAboutWhatWasMeasured) {
    std::mt19937 random(1);
    std::exponential_distribution<double> size(1.0 / 2300);
    std::vector<Extent> posts(19'997);
    for (Extent& post : posts) post = {0, static_cast<std::uint64_t>(size(random))};
    const NearDuplicateSeconds seconds = estimate_near_duplicates(posts, 0.05, false);
    EXPECT_GT(seconds.exact, 0.37 / 2);
    EXPECT_LT(seconds.exact, 0.37 * 2);
    EXPECT_GT(seconds.ctph, 0.33 / 2);
    EXPECT_LT(seconds.ctph, 0.33 * 2);
    EXPECT_FALSE(seconds.documents_first);
}

TEST(NearDuplicateCost, ManyShortDocumentsAreComparedBeforeTheirSignatures) {
    const NearDuplicateSeconds seconds = estimate(1'000'000, 120);
    EXPECT_TRUE(seconds.documents_first);
    EXPECT_EQ(seconds.ctph, seconds.exact);
}

TEST(NearDuplicateCost, GivenSignaturesTakeLess) {
    EXPECT_LT(estimate(20'000, 100'000, 0.05, true).ctph, estimate(20'000, 100'000).ctph);
}

TEST(NearDuplicateCost, AtHighThresholdsDocumentsAreComparedBeforeTheirSignatures) {
    EXPECT_FALSE(estimate(20'000, 100'000, 0.05).documents_first);
    for (const double threshold : {0.07, 0.1, 0.3})
        EXPECT_TRUE(estimate(20'000, 100'000, threshold).documents_first);
}

// Documents are put into bins by size: neither the order of the documents nor a bin's limit shows.
TEST(NearDuplicateCost, GrowsWithSizesAndIsTheSameInAnyOrder) {
    std::mt19937 random(7);
    for (int round = 0; round < 20; ++round) {
        std::vector<Extent> extents;
        for (int i = 0; i < 3000; ++i) extents.push_back({0, random() >> (random() % 32)});
        const NearDuplicateSeconds before = estimate_near_duplicates(extents, 0.05, false);
        std::ranges::shuffle(extents, random);
        const NearDuplicateSeconds after = estimate_near_duplicates(extents, 0.05, false);
        EXPECT_DOUBLE_EQ(before.exact, after.exact);
        EXPECT_DOUBLE_EQ(before.ctph, after.ctph);
    }
    double last = 0;
    for (std::uint64_t size = 1000; size < 5000; ++size) {
        const double seconds = estimate(1000, size).exact;
        EXPECT_GE(seconds, last) << size;
        last = seconds;
    }
    EXPECT_GT(estimate(3, std::uint64_t{1} << 31).exact, estimate(3, 1 << 30).exact);
}

}  // namespace
}  // namespace gputext
