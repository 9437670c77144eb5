#include "cpp/terms/counts.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::RandomStrings;

std::map<std::uint32_t, std::int32_t> ended(TermCounts& counts) {
    counts.end_text();
    EXPECT_EQ(counts.terms().size(), counts.counts().size());
    std::map<std::uint32_t, std::int32_t> all;
    for (std::size_t i = 0; i < counts.terms().size(); ++i) {
        if (i > 0) {
            EXPECT_LT(counts.terms()[i - 1], counts.terms()[i]);
        }
        all[counts.terms()[i]] = counts.counts()[i];
    }
    return all;
}

TEST(TermCounts, CountsTextByText) {
    RandomStrings random;
    TermCounts counts;
    for (int text = 0; text < 200; ++text) {
        std::map<std::uint32_t, std::int32_t> expected;
        const std::size_t terms = 1 + random.below(1000);
        for (std::size_t i = random.below(500); i > 0; --i) {
            const auto term = static_cast<std::uint32_t>(random.below(terms));
            const auto times = static_cast<std::uint32_t>(random.below(3));
            ASSERT_TRUE(counts.add(term, times));
            if (times > 0) expected[term] += static_cast<std::int32_t>(times);
        }
        ASSERT_EQ(ended(counts), expected);
        // A text without terms, and the same again.
        if (text % 3 == 0) {
            ASSERT_TRUE(ended(counts).empty());
        }
    }
}

TEST(TermCounts, RefusesMoreThanAnInt) {
    TermCounts counts;
    EXPECT_TRUE(counts.add(7, INT32_MAX - 1));
    EXPECT_TRUE(counts.add(7));
    EXPECT_FALSE(counts.add(7));
    EXPECT_FALSE(counts.add(8, UINT32_MAX));
    EXPECT_EQ(ended(counts), (std::map<std::uint32_t, std::int32_t>{{7, INT32_MAX}}));
}

}  // namespace
}  // namespace gputext
