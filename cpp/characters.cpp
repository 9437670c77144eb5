#include "cpp/characters.hpp"

#include <algorithm>
#include <cstring>

#include "cpp/stoppable.hpp"

namespace gputext {

CharacterLengths::CharacterLengths(const std::array<std::uint8_t, 256>& by_first_byte)
    : by_first_byte_(by_first_byte), all_single_(true) {
    for (auto& length : by_first_byte_) {
        if (length < 1 || length > 4) length = 1;
        if (length > 1) all_single_ = false;
    }
}

CharacterLengths CharacterLengths::single_byte() {
    std::array<std::uint8_t, 256> lengths;
    lengths.fill(1);
    return CharacterLengths(lengths);
}

CharacterLengths CharacterLengths::utf8() {
    std::array<std::uint8_t, 256> lengths;
    lengths.fill(1);
    std::fill(lengths.begin() + 0xc0, lengths.begin() + 0xe0, std::uint8_t{2});
    std::fill(lengths.begin() + 0xe0, lengths.begin() + 0xf0, std::uint8_t{3});
    std::fill(lengths.begin() + 0xf0, lengths.begin() + 0xf8, std::uint8_t{4});
    return CharacterLengths(lengths);
}

bool is_narrow(Bytes text, const CharacterLengths& lengths, Stop stop) {
    if (lengths.all_single()) return true;
    constexpr std::uint64_t high_bits = 0x8080808080808080u;
    std::uint64_t any = 0;
    for (std::size_t at = 0; at < text.size() && (any & high_bits) == 0 && !stop();) {
        const std::size_t part_end = std::min(text.size(), at + kLookEvery);
        // No exit from within: most texts are narrow.
        for (; at + sizeof any <= part_end; at += sizeof any) {
            std::uint64_t word;
            std::memcpy(&word, text.data() + at, sizeof word);
            any |= word;
        }
        for (; at < part_end; ++at) any |= text[at];
    }
    return (any & high_bits) == 0;
}

std::size_t count_characters(Bytes text, const CharacterLengths& lengths, Stop stop) {
    if (is_narrow(text, lengths, stop)) return text.size();
    std::size_t count = 0;
    for (std::size_t at = 0; at < text.size() && !stop();) {
        const std::size_t part_end = std::min(text.size(), at + kLookEvery);
        for (; at < part_end; at += lengths.of(text[at])) ++count;
    }
    return count;
}

void decode_characters(Bytes text, const CharacterLengths& lengths,
                       std::vector<std::uint32_t>& symbols, Stop stop) {
    symbols.clear();
    symbols.reserve(text.size());
    std::size_t count = 0;
    for (std::size_t at = 0; at < text.size() && !stop();) {
        const std::size_t part_end = std::min(text.size(), at + kLookEvery);
        symbols.resize(count + (part_end - at));
        while (at < part_end) {
            const std::size_t end = std::min(text.size(), at + lengths.of(text[at]));
            std::uint32_t symbol = 0;
            for (; at < end; ++at) symbol = symbol << 8 | text[at];
            symbols[count++] = symbol;
        }
    }
    symbols.resize(count);
}

}  // namespace gputext
