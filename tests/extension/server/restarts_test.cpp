#include "extension/server/restarts.hpp"

#include <gtest/gtest.h>

#include <climits>

namespace gputext {
namespace {

TEST(Restarts, LooksForDevicesAgainEverLater) {
    EXPECT_EQ(pause_after_looks(0), 0);
    EXPECT_EQ(pause_after_looks(2), 0);
    EXPECT_EQ(pause_after_looks(3), 1000);
    EXPECT_EQ(pause_after_looks(4), 2000);
    EXPECT_EQ(pause_after_looks(11), 256000);
    EXPECT_EQ(pause_after_looks(12), 300000);
    EXPECT_EQ(pause_after_looks(INT_MAX), 300000);
}

TEST(Restarts, StartsAtOnceFiveTimesThenWaitsLonger) {
    Backoff backoff;
    for (int i = 0; i < 5; ++i) EXPECT_EQ(backoff.after_an_end(10), 0);
    for (const std::int64_t wait : {1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000, 60000})
        EXPECT_EQ(backoff.after_an_end(60000), wait);
}

TEST(Restarts, ForgivesWhatHasRunForAMinute) {
    Backoff backoff;
    for (int i = 0; i < 7; ++i) backoff.after_an_end(0);
    EXPECT_EQ(backoff.after_an_end(60001), 0);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(backoff.after_an_end(0), 0);
    EXPECT_EQ(backoff.after_an_end(0), 1000);
}

}  // namespace
}  // namespace gputext
