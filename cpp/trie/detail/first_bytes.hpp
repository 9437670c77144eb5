// cpp/trie/detail/first_bytes.hpp - the first bytes of a string as a number

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace gputext {

/// The first eight bytes, the first one lowest, zeros behind the end. Faster than to copy a number
/// of bytes that the compiler does not know.
inline std::uint64_t first_bytes(std::string_view text) {
    const char* const bytes = text.data();
    const std::size_t size = text.size();
    if (size >= 8) {
        std::uint64_t all;
        std::memcpy(&all, bytes, sizeof all);
        return all;
    }
    if (size >= 4) {
        std::uint32_t first, last;
        std::memcpy(&first, bytes, sizeof first);
        std::memcpy(&last, bytes + size - sizeof last, sizeof last);
        return first | std::uint64_t{last} << 8 * (size - sizeof last);
    }
    std::uint64_t some = 0;
    for (std::size_t i = 0; i < size; ++i)
        some |= std::uint64_t{static_cast<std::uint8_t>(bytes[i])} << 8 * i;
    return some;
}

}  // namespace gputext
