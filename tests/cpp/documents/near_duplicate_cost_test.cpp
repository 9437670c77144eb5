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

// By these gputextd tells whether several GPUs are worth it: docs/gpu.md.
TEST(NearDuplicateCost, TellsWhatSignaturesAreComparedFor) {
    const NearDuplicateSeconds some = estimate(100'000, 24, 0.05, true),
                               more = estimate(200'000, 24, 0.05, true);
    EXPECT_GT(some.signature_pairs, 0);
    EXPECT_LT(some.signature_pairs, some.signatures_first);
    EXPECT_NEAR(more.signature_pairs, 4 * some.signature_pairs, 0.01 * more.signature_pairs);
    // What signatures take that are not there is no comparison of them.
    const NearDuplicateSeconds missing = estimate(100'000, 24, 0.05, false);
    EXPECT_EQ(missing.signature_pairs, some.signature_pairs);
    EXPECT_GT(missing.signatures_first, some.signatures_first);
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

// The time follows the product of the numbers, and not the square of their sum.
TEST(NearDuplicateCost, FewNewDocumentsTakeLittle) {
    for (const std::uint64_t size : {300, 2000}) {
        const auto both = documents(100'000, size);
        const NearDuplicateSeconds all = estimate_near_duplicates(both, 0.05, true);
        for (const std::uint32_t split : {100u, 99'900u}) {
            const NearDuplicateSeconds few = estimate_near_duplicates(both, 0.05, true, split);
            EXPECT_LT(few.exact, all.exact / 5) << size;
            EXPECT_LT(few.signatures_first, all.signatures_first / 5) << size;
            EXPECT_GT(few.exact, 0);
        }
        // Of as many on both sides half of the pairs are across.
        const NearDuplicateSeconds half = estimate_near_duplicates(both, 0.05, true, 50'000);
        EXPECT_LT(half.signatures_first, all.signatures_first);
        EXPECT_GT(half.signatures_first, all.signatures_first / 3);
        EXPECT_LT(estimate_near_duplicates(both, 0.05, true, 100).exact, half.exact);
    }
    // Documents of other lengths are not compared.
    auto lengths = documents(50'000, 5000);
    lengths.resize(100'000, {0, 9000});
    EXPECT_LT(estimate_near_duplicates(lengths, 0.05, true, 50'000).exact,
              estimate_near_duplicates(documents(100'000, 7000), 0.05, true, 50'000).exact / 3);
}

TEST(NearDuplicateCost, OfDistinctDocumentsIsThatOfTheirSides) {
    const auto extents = documents(1000, 500);
    const std::vector<std::uint32_t> lengths(1000, 500);
    std::vector<std::uint8_t> sides(1000, 2);
    std::fill_n(sides.begin(), 300, std::uint8_t{1});
    DistinctDocuments distinct{{nullptr, extents}, lengths, {}, sides};
    EXPECT_EQ(estimate_near_duplicates(distinct, 0.05).exact,
              estimate_near_duplicates(extents, 0.05, false, 300).exact);
    distinct.sides = {};
    EXPECT_EQ(estimate_near_duplicates(distinct, 0.05).exact,
              estimate_near_duplicates(extents, 0.05, false).exact);
}

// As measured on names of 24 characters.
TEST(NearDuplicateCost, PairsOfShortDocumentsTakeADeviceAsLongAsMeasured) {
    struct Measured {
        std::uint32_t first, second;
        double threshold, seconds;
    };
    for (const auto& [first, second, threshold, seconds] :
         {Measured{1'000'000, 1'000'000, 0.05, 0.85}, Measured{1'000'000, 1'000'000, 0.1, 1.1},
          Measured{100'000, 100'000, 0.2, 0.59}}) {
        const double estimated =
            estimate_near_duplicates(documents(first + second, 24), threshold, false, first).device;
        EXPECT_GT(estimated, seconds / 1.5) << threshold;
        EXPECT_LT(estimated, seconds * 1.5) << threshold;
    }
    // Groups of 1,000 names beside a million took 6.6 s, pairs of ten thousand on 16 processors 0.57 s.
    EXPECT_NEAR(estimate_near_duplicates(documents(1'001'000, 24), 0.1, false, 1'000).device_groups,
                5.1, 0.5);
    EXPECT_NEAR(estimate_near_duplicates(documents(1'010'000, 24), 0.1, false, 10'000).exact, 9, 3);
    double before = 0;
    for (const double threshold : {0.0, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.4}) {
        const double now = estimate(1'000, 24, threshold).device;
        EXPECT_GE(now, before) << threshold;
        before = now;
    }
    EXPECT_EQ(estimate(1'000'000, 100, 0.1).device, 0) << "of longer documents nothing is known";
}

}  // namespace
}  // namespace gputext
