// cpp/documents/detail/folded_text.hpp - texts with a byte for each character

#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>

#include "cpp/base/characters.hpp"

namespace gputext {

// ---- Characters as bytes ----
//
// Sketches in indexes on disk are made of folded characters: this never changes.

/// A byte for a character's number. Numbers below 256 stay what they are, so that a narrow text is
/// its own folding; the others share the upper half.
constexpr std::uint8_t folded_character(std::uint32_t symbol) {
    // Without a branch, which random texts would make as random.
    const std::uint32_t wide = symbol < 256 ? 0 : UINT32_MAX;
    return static_cast<std::uint8_t>((symbol & ~wide) |
                                     ((0x80 | symbol * 0x9e3779b1u >> 25) & wide));
}

/// Folds the characters from text[begin] on, as many as `folded` has room for, and moves `begin`
/// behind them; returns how many these are.
inline std::size_t fold_characters(Bytes text, const CharacterLengths& lengths, std::size_t& begin,
                                   std::span<std::uint8_t> folded) {
    std::size_t at = begin;  // `folded` might overlap the caller's number: keeps it in a register
    std::size_t size = 0;
    while (size < folded.size() && at < text.size()) {
        // Characters of one byte below 0x80 are their own folding.
        std::uint64_t run;
        if (size + sizeof run <= folded.size() && at + sizeof run <= text.size()) {
            std::memcpy(&run, &text[at], sizeof run);
            if ((run & 0x8080808080808080u) == 0) {
                std::memcpy(&folded[size], &run, sizeof run);
                size += sizeof run;
                at += sizeof run;
                continue;
            }
        }
        // Some at once, as a look at each one for a run would take longer.
        const std::size_t end = std::min(folded.size(), size + sizeof run);
        while (size < end && at < text.size())
            folded[size++] = folded_character(next_character(text, lengths, at));
    }
    begin = at;
    return size;
}

}  // namespace gputext
