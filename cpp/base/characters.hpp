// cpp/base/characters.hpp - splits texts into characters, in any server encoding

#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cpp/base/stop.hpp"

namespace gputext {

using Bytes = std::span<const std::uint8_t>;

/// How many bytes a character takes, told by its first byte. Every encoding that a PostgreSQL
/// server may store (UTF-8, the EUC family, MULE_INTERNAL, the single-byte ones) can be described
/// so, with 1 to 4 bytes a character and one byte for everything below 0x80.
class CharacterLengths {
public:
    /// One byte, one character: binary data and single-byte encodings.
    static CharacterLengths single_byte();
    static CharacterLengths utf8();
    /// Entries outside 1..4 are taken as 1.
    explicit CharacterLengths(const std::array<std::uint8_t, 256>& by_first_byte);

    std::size_t of(std::uint8_t first_byte) const { return by_first_byte_[first_byte]; }
    bool all_single() const { return all_single_; }
    bool is_utf8() const { return is_utf8_; }

private:
    std::array<std::uint8_t, 256> by_first_byte_;
    bool all_single_;
    bool is_utf8_;
};

// When `stop` says so the following end early, with an answer that is of no use.

/// True when each byte of the text is one character, so that it can be compared byte by byte.
bool is_narrow(Bytes text, const CharacterLengths& lengths, Stop stop = {});

/// Number of characters. A character cut off by the end of the text counts as one.
std::size_t count_characters(Bytes text, const CharacterLengths& lengths, Stop stop = {});

/// The character at text[at] as a number: its bytes, the first one highest; `at` moves behind it.
/// Two characters have the same number exactly when they have the same bytes; a narrow text's are
/// its bytes. Requires at < text.size().
inline std::uint32_t next_character(Bytes text, const CharacterLengths& lengths, std::size_t& at) {
    const std::size_t length = lengths.of(text[at]);
    std::uint32_t symbol = 0;
    if (text.size() - at >= sizeof symbol) {
        // Without branches: lengths that change cannot be foretold.
        std::memcpy(&symbol, &text[at], sizeof symbol);
        static_assert(std::endian::native == std::endian::little);
        at += length;
        return __builtin_bswap32(symbol) >> (8 * (sizeof symbol - length));
    }
    for (const std::size_t end = std::min(text.size(), at + length); at < end; ++at)
        symbol = symbol << 8 | text[at];
    return symbol;
}

/// Replaces `symbols` by the numbers of all characters.
void decode_characters(Bytes text, const CharacterLengths& lengths,
                       std::vector<std::uint32_t>& symbols, Stop stop = {});

}  // namespace gputext
