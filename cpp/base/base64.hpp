// cpp/base/base64.hpp - bytes as text: base64 of RFC 4648, in one line, with padding

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cpp/base/status.hpp"

namespace gputext {

constexpr std::size_t base64_size(std::size_t bytes) {
    return (bytes + 2) / 3 * 4;
}

/// Writes base64_size(bytes.size()) characters.
void write_base64(std::span<const std::uint8_t> bytes, char* digits);

/// The number of bytes that the digits stand for. An error when there can be no such number.
Result<std::size_t> base64_bytes(std::string_view digits);

/// Writes base64_bytes(digits) bytes. An error when a character is not of base64, or when digits
/// other than those that write_base64() gives stand for the same bytes.
Status read_base64(std::string_view digits, std::uint8_t* bytes);

}  // namespace gputext
