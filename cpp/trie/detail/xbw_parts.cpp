#include "cpp/trie/detail/xbw_parts.hpp"

#include <bit>

#include "cpp/base/stoppable.hpp"

namespace gputext {

std::vector<XbwLine> xbw_lines(std::uint32_t size) {
    return std::vector<XbwLine>((std::size_t{size} + kXbwLineBits - 1) / kXbwLineBits, XbwLine{});
}

std::uint32_t count_lines(std::vector<XbwLine>& lines) {
    std::uint32_t before = 0;
    for (XbwLine& line : lines) {
        line.before = before;
        for (const std::uint32_t bits : line.bits)
            before += static_cast<std::uint32_t>(std::popcount(bits));
    }
    return before;
}

std::uint32_t rank_in(const std::vector<XbwLine>& lines, std::uint32_t i) {
    const XbwLine& line = lines[i / kXbwLineBits];
    const std::uint32_t bit = i % kXbwLineBits;
    std::uint32_t rank = line.before;
    for (std::uint32_t word = 0; word < bit / 32; ++word)
        rank += static_cast<std::uint32_t>(std::popcount(line.bits[word]));
    return rank +
           static_cast<std::uint32_t>(std::popcount(line.bits[bit / 32] & ((1u << bit % 32) - 1)));
}

void pack_number(std::uint8_t* to, std::uint64_t i, std::uint32_t bits, std::uint32_t number) {
    const std::uint64_t bit = i * bits;
    std::uint64_t word;
    std::memcpy(&word, to + bit / 8, sizeof word);
    word |= std::uint64_t{number} << bit % 8;
    std::memcpy(to + bit / 8, &word, sizeof word);
}

bool find_shortcuts(std::span<const std::uint32_t> codes, CodeShortcuts& found, Stop stop) {
    const auto words = static_cast<std::uint32_t>(codes.size());
    std::vector<XbwLine> seen = xbw_lines(words);
    found.marks = xbw_lines(words);
    struct Shortcut {
        std::uint32_t from, to;
    };
    std::vector<Shortcut> shortcuts;
    std::size_t steps = 0;
    for (std::uint32_t first = 0; first < words; ++first) {
        if (has_bit(seen, first)) continue;
        const std::size_t before = shortcuts.size();
        std::uint32_t length = 0, last = first;
        std::uint32_t i = first;
        do {
            set_bit(seen, i);
            if (length > 0 && length % kXbwShortcut == 0) {
                shortcuts.push_back({i, last});
                last = i;
            }
            ++length;
            if (++steps % kLookEvery == 0 && stop()) return false;
            i = codes[i];
        } while (i != first);
        if (shortcuts.size() > before) shortcuts.push_back({first, last});
    }
    for (const Shortcut& shortcut : shortcuts) set_bit(found.marks, shortcut.from);
    found.targets.resize(count_lines(found.marks));
    for (const Shortcut& shortcut : shortcuts)
        found.targets[rank_in(found.marks, shortcut.from)] = shortcut.to;
    return true;
}

}  // namespace gputext
