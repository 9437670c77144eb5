#include "extension/server/progress_text.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace gputext {
namespace {

std::string duration(double seconds) {
    char text[32];
    format_duration(text, seconds);
    return text;
}

std::string progress(std::uint64_t done, std::uint64_t total, double elapsed) {
    char text[96];
    format_progress(text, done, total, elapsed);
    return text;
}

std::string training(std::uint32_t epoch, double loss) {
    char text[64];
    format_training(text, epoch, loss);
    return text;
}

TEST(ProgressText, SaysDurationsInTheUnitThatFits) {
    EXPECT_EQ(duration(0), "1 s");
    EXPECT_EQ(duration(99.4), "99 s");
    EXPECT_EQ(duration(100), "2 min");
    EXPECT_EQ(duration(5990), "100 min");
    EXPECT_EQ(duration(6000), "2 h");
}

TEST(ProgressText, SaysHowFarAPhaseIs) {
    EXPECT_EQ(progress(0, 0, 5), "");
    EXPECT_EQ(progress(12, 0, 5), ", 12 so far");
    EXPECT_EQ(progress(0, 10, 5), ", 0 %");
    EXPECT_EQ(progress(1, 4, 0), ", 25 %");
    EXPECT_EQ(progress(1, 4, 10), ", 25 %, about 30 s left");
    // More steps than were foreseen
    EXPECT_EQ(progress(5, 4, 10), ", 100 %, about 1 s left");
    EXPECT_EQ(progress(1, std::numeric_limits<std::uint64_t>::max(), 1e300).substr(0, 5), ", 0 %");
}

TEST(ProgressText, SaysTheEpochAndTheLossThatAreKnown) {
    EXPECT_EQ(training(0, 0.5), "");
    EXPECT_EQ(training(3, 0.25), ", epoch 3, loss 0.250");
    EXPECT_EQ(training(3, std::numeric_limits<double>::quiet_NaN()), ", epoch 3");
}

}  // namespace
}  // namespace gputext
