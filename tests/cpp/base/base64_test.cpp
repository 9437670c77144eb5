#include "cpp/base/base64.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace gputext {
namespace {

std::string written(const std::vector<std::uint8_t>& bytes) {
    std::string digits(base64_size(bytes.size()), ' ');
    write_base64(bytes, digits.data());
    return digits;
}

std::string written(std::string_view bytes) {
    return written(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
}

/// The bytes, or the message of the error.
std::string read(std::string_view digits) {
    const Result<std::size_t> size = base64_bytes(digits);
    if (!size.ok()) return size.status().message();
    std::vector<std::uint8_t> bytes(*size);
    const Status status = read_base64(digits, bytes.data());
    if (!status.ok()) return status.message();
    return {bytes.begin(), bytes.end()};
}

// Section 10 of RFC 4648
TEST(Base64, GivesTheDigitsOfTheStandard) {
    const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
    for (const auto& [bytes, digits] : cases) {
        EXPECT_EQ(written(bytes), digits);
        EXPECT_EQ(read(digits), bytes);
    }
    EXPECT_EQ(written({0xfb, 0xff, 0xbf}), "+/+/");
}

TEST(Base64, ReadsWhatItWrites) {
    std::mt19937 random(1);
    for (std::size_t size = 0; size < 300; ++size) {
        std::vector<std::uint8_t> bytes(size);
        for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
        const std::string digits = written(bytes);
        EXPECT_EQ(std::ranges::count(digits, '\\'), 0);
        EXPECT_EQ(read(digits), std::string(bytes.begin(), bytes.end())) << size;
    }
}

TEST(Base64, RefusesOtherTexts) {
    for (const char* digits : {"A", "AA", "AAA", "AAAAA", "=", "AAAA="})
        EXPECT_EQ(read(digits), "the number of characters of base64 is no multiple of four")
            << digits;
    const std::pair<const char*, int> cases[] = {
        {"====", 1},        {"A===", 2}, {"AA=A", 3}, {"Zm9v Zm9", 5}, {"Zm9v\nZm=", 5},
        {"Zm9vZm9\x80", 8}, {"-AAA", 1}, {"AAA_", 4}, {"AA==AAAA", 3}, {"AAAAA*==", 6}};
    for (const auto& [digits, place] : cases)
        EXPECT_EQ(read(digits),
                  "the character at place " + std::to_string(place) + " is no digit of base64")
            << digits;
    for (const char* digits : {"Zh==", "Zm9vZm9=", "Zm9="})
        EXPECT_EQ(read(digits), "the last digit of base64 has bits of no byte") << digits;
}

}  // namespace
}  // namespace gputext
