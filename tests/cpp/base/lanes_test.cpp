#include "cpp/base/lanes.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::value_of_half;

// Every binary16 is itself; between two of them the nearer one is taken, and in the middle the even
// one.
TEST(HalfNear, RoundsToTheNearestEven) {
    for (std::uint32_t bits = 0; bits < 0x7c00; ++bits) {
        const auto here = static_cast<float>(value_of_half(static_cast<std::uint16_t>(bits)));
        EXPECT_EQ(half_near(here).bits, bits);
        EXPECT_EQ(half_near(-here).bits, bits | 0x8000);
        if (bits + 1 == 0x7c00) break;
        const double next = value_of_half(static_cast<std::uint16_t>(bits + 1));
        const auto middle = static_cast<float>((here + next) / 2);
        EXPECT_EQ(half_near(middle).bits, bits + (bits & 1)) << bits;
        EXPECT_EQ(half_near(std::nextafter(middle, 0.0f)).bits, bits) << bits;
        EXPECT_EQ(half_near(std::nextafter(middle, 1e6f)).bits, bits + 1) << bits;
    }
    EXPECT_EQ(half_near(65519.0f).bits, 0x7bff);
    EXPECT_EQ(half_near(65520.0f).bits, 0x7c00);
    EXPECT_EQ(half_near(-1e30f).bits, 0xfc00);
    EXPECT_EQ(half_near(1e-40f).bits, 0);
}

}  // namespace
}  // namespace gputext
