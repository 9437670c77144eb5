// cpp/documents/detail/folded_character.hpp - characters as bytes
//
// Sketches in indexes on disk are made of folded characters: this never changes.

#pragma once

#include <cstdint>

namespace gputext {

/// A byte for a character's number. Numbers below 256 stay what they are, so that a narrow text is
/// its own folding; the others share the upper half.
constexpr std::uint8_t folded_character(std::uint32_t symbol) {
    // Without a branch, which random texts would make as random.
    const std::uint32_t wide = symbol < 256 ? 0 : UINT32_MAX;
    return static_cast<std::uint8_t>((symbol & ~wide) |
                                     ((0x80 | symbol * 0x9e3779b1u >> 25) & wide));
}

}  // namespace gputext
