#include "cpp/documents/sketch_model.hpp"

#include <gtest/gtest.h>

namespace gputext {
namespace {

TEST(LengthClass, GrowsWithTheLength) {
    unsigned last = 0;
    for (std::uint32_t length = 0; length < 300'000; ++length) {
        const unsigned number = length_class(length);
        ASSERT_TRUE(number == last || number > last) << length;
        ASSERT_LT(number, kLengthClasses);
        last = number;
    }
    EXPECT_EQ(length_class(UINT32_MAX), kLengthClasses - 1);
}

TEST(LengthClass, BeginsAtItsLeastLength) {
    unsigned used = 0;
    for (unsigned number = 0; number < kLengthClasses; ++number) {
        const std::uint32_t least = least_length_of(static_cast<std::uint8_t>(number));
        if (length_class(least) != number) {  // a number of no length
            EXPECT_LT(number, 8u);
            continue;
        }
        ++used;
        EXPECT_TRUE(least == 0 || length_class(least - 1) < number) << least;
    }
    EXPECT_GE(used, kLengthClasses - 5);
}

/// Lengths of a class differ by less than a tenth where most documents are.
TEST(LengthClass, TellsCommonLengthsApart) {
    for (std::uint8_t number = length_class(64); number < length_class(65'535); ++number) {
        const std::uint8_t next = number + 1;
        ASSERT_LE(least_length_of(next), 1.1 * least_length_of(number)) << unsigned{number};
    }
}

}  // namespace
}  // namespace gputext
