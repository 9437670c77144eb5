#include "cpp/base/base64.hpp"

#include <array>
#include <string>

namespace gputext {
namespace {

constexpr char kPadding = '=';
constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Marks a byte that is no digit, by bits that no value has.
constexpr std::uint8_t kNoDigit = 0xff;

constexpr std::array<std::uint8_t, 256> kValues = [] {
    std::array<std::uint8_t, 256> values{};
    values.fill(kNoDigit);
    for (std::size_t i = 0; i < kDigits.size(); ++i)
        values[static_cast<std::uint8_t>(kDigits[i])] = static_cast<std::uint8_t>(i);
    return values;
}();

std::uint8_t value_of(char digit) {
    return kValues[static_cast<std::uint8_t>(digit)];
}

/// How many characters at the end are padding: 0, 1 or 2.
std::size_t padding(std::string_view digits) {
    if (!digits.ends_with(kPadding)) return 0;
    return digits[digits.size() - 2] == kPadding ? 2 : 1;
}

Status wrong_digit(std::string_view digits) {
    std::size_t at = 0;
    while (at < digits.size() && value_of(digits[at]) != kNoDigit) ++at;
    return {ErrorCode::invalid_argument,
            "the character at place " + std::to_string(at + 1) + " is no digit of base64"};
}

/// The last digits of a text whose size is no multiple of three bytes.
Status read_rest(std::string_view digits, std::uint8_t* bytes) {
    std::uint32_t bits = 0;
    for (const char digit : digits) bits = bits << 6 | value_of(digit);
    const std::size_t unused = digits.size() == 2 ? 4 : 2;
    if ((bits & ((1u << unused) - 1)) != 0)
        return {ErrorCode::invalid_argument, "the last digit of base64 has bits of no byte"};
    bits >>= unused;
    if (digits.size() == 3) *bytes++ = static_cast<std::uint8_t>(bits >> 8);
    *bytes = static_cast<std::uint8_t>(bits);
    return {};
}

}  // namespace

void write_base64(std::span<const std::uint8_t> bytes, char* digits) {
    const std::size_t whole = bytes.size() / 3 * 3;
    const auto put = [&](std::uint32_t bits, int count) {
        for (int i = 0; i < count; ++i) *digits++ = kDigits[bits >> (18 - 6 * i) & 63];
    };
    for (std::size_t i = 0; i < whole; i += 3)
        put(std::uint32_t{bytes[i]} << 16 | bytes[i + 1] << 8 | bytes[i + 2], 4);
    if (bytes.size() - whole == 1) {
        put(std::uint32_t{bytes[whole]} << 16, 2);
        *digits++ = kPadding;
        *digits++ = kPadding;
    } else if (bytes.size() - whole == 2) {
        put(std::uint32_t{bytes[whole]} << 16 | bytes[whole + 1] << 8, 3);
        *digits++ = kPadding;
    }
}

Result<std::size_t> base64_bytes(std::string_view digits) {
    if (digits.size() % 4 != 0)
        return Status(ErrorCode::invalid_argument,
                      "the number of characters of base64 is no multiple of four");
    return digits.empty() ? 0 : digits.size() / 4 * 3 - padding(digits);
}

Status read_base64(std::string_view digits, std::uint8_t* bytes) {
    const std::string_view given = digits.substr(0, digits.size() - padding(digits));
    const std::size_t whole = given.size() / 4 * 4;
    std::uint8_t seen = 0;
    for (std::size_t i = 0; i < whole; i += 4) {
        const std::uint8_t a = value_of(given[i]), b = value_of(given[i + 1]),
                           c = value_of(given[i + 2]), d = value_of(given[i + 3]);
        seen |= a | b | c | d;
        *bytes++ = static_cast<std::uint8_t>(a << 2 | b >> 4);
        *bytes++ = static_cast<std::uint8_t>(b << 4 | c >> 2);
        *bytes++ = static_cast<std::uint8_t>(c << 6 | d);
    }
    for (const char digit : given.substr(whole)) seen |= value_of(digit);
    if ((seen & ~63u) != 0) return wrong_digit(given);
    return given.size() == whole ? Status() : read_rest(given.substr(whole), bytes);
}

}  // namespace gputext
