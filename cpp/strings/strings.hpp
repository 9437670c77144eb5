// cpp/strings/strings.hpp - view of the strings of one job

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gputext {

/// A string, or the ascending numbers of its distinct trigrams.
using Symbols = std::span<const std::uint32_t>;

/// Strings in input order, at most 2^32 - 2. A view: whoever made it keeps the memory.
struct Strings {
    std::span<const std::uint64_t> begins;  // string i has the symbols [begins[i], begins[i + 1])
    const std::uint32_t* symbols = nullptr;

    std::size_t size() const { return begins.empty() ? 0 : begins.size() - 1; }
    std::size_t length(std::size_t i) const { return begins[i + 1] - begins[i]; }
    Symbols operator[](std::size_t i) const { return {symbols + begins[i], length(i)}; }
};

}  // namespace gputext
