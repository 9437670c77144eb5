#include "cpp/base/characters.hpp"

#include <algorithm>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

std::array<std::uint8_t, 256> utf8_lengths() {
    std::array<std::uint8_t, 256> lengths;
    lengths.fill(1);
    std::fill(lengths.begin() + 0xc0, lengths.begin() + 0xe0, std::uint8_t{2});
    std::fill(lengths.begin() + 0xe0, lengths.begin() + 0xf0, std::uint8_t{3});
    std::fill(lengths.begin() + 0xf0, lengths.begin() + 0xf8, std::uint8_t{4});
    return lengths;
}

/// Bytes that begin a character, in a form that is vectorised: a gigabyte takes less than 100 ms.
[[gnu::optimize("O3")]] std::size_t count_utf8(Bytes text) {
    std::size_t count = 0;
    for (const std::uint8_t byte : text) count += (byte & 0xc0) != 0x80;
    return count;
}

/// No early exit: most texts are so, and this form is vectorised.
[[gnu::optimize("O3")]] bool all_below_0x80(Bytes text) {
    std::uint8_t any = 0;
    for (const std::uint8_t byte : text) any |= byte;
    return any < 0x80;
}

}  // namespace

CharacterLengths::CharacterLengths(const std::array<std::uint8_t, 256>& by_first_byte)
    : by_first_byte_(by_first_byte), all_single_(true), is_utf8_(false) {
    for (auto& length : by_first_byte_) {
        if (length < 1 || length > 4) length = 1;
        if (length > 1) all_single_ = false;
    }
    is_utf8_ = by_first_byte_ == utf8_lengths();
}

CharacterLengths CharacterLengths::single_byte() {
    std::array<std::uint8_t, 256> lengths;
    lengths.fill(1);
    return CharacterLengths(lengths);
}

CharacterLengths CharacterLengths::utf8() {
    return CharacterLengths(utf8_lengths());
}

bool is_narrow(Bytes text, const CharacterLengths& lengths, Stop stop) {
    if (lengths.all_single()) return true;
    for (std::size_t at = 0; at < text.size() && !stop(); at += kLookEvery)
        if (!all_below_0x80(text.subspan(at, std::min(kLookEvery, text.size() - at)))) return false;
    return true;
}

std::size_t count_characters(Bytes text, const CharacterLengths& lengths, Stop stop) {
    if (lengths.is_utf8()) return count_utf8(text);
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
        while (at < part_end) symbols[count++] = next_character(text, lengths, at);
    }
    symbols.resize(count);
}

}  // namespace gputext
