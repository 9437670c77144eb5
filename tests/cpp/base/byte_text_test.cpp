#include "cpp/base/byte_text.hpp"

#include <gtest/gtest.h>

namespace gputext {
namespace {

TEST(ByteText, TakesTheUnitThatFits) {
    EXPECT_EQ(byte_text(0), "0 bytes");
    EXPECT_EQ(byte_text(1), "1 byte");
    EXPECT_EQ(byte_text(999), "999 bytes");
    EXPECT_EQ(byte_text(1000), "1.00 kB");
    EXPECT_EQ(byte_text(999'994), "999.99 kB");
    EXPECT_EQ(byte_text(999'995), "1.00 MB");
    EXPECT_EQ(byte_text(3'072'003'072), "3.07 GB");
    EXPECT_EQ(byte_text(UINT64_MAX), "18.45 EB");
}

}  // namespace
}  // namespace gputext
