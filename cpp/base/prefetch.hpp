// cpp/base/prefetch.hpp - has the processor fetch bytes into its cache while it does something else

#pragma once

#include <cstddef>

namespace gputext {

/// So many bytes from there on, which may be read. Changes nothing but time.
inline void prefetch(const void* bytes, std::size_t size) {
    constexpr std::size_t line = 64;  // of the cache
    for (std::size_t byte = 0; byte < size; byte += line)
        __builtin_prefetch(static_cast<const char*>(bytes) + byte);
}

}  // namespace gputext
