// cpp/base/words.hpp - view of many words, one behind the other

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gputext {

/// A view: whoever made it keeps the memory. At most 2^32 - 2 words, each below 4 GB.
struct Words {
    const std::uint8_t* bytes = nullptr;
    const std::uint64_t* begins = nullptr;  // one more than there are words, the first one 0
    std::size_t count = 0;

    std::size_t size() const { return count; }
    std::uint64_t byte_count() const { return count == 0 ? 0 : begins[count]; }
    std::string_view operator[](std::size_t i) const {
        return {reinterpret_cast<const char*>(bytes) + begins[i],
                static_cast<std::size_t>(begins[i + 1] - begins[i])};
    }
};

}  // namespace gputext
