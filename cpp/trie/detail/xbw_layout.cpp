#include "cpp/trie/detail/xbw_layout.hpp"

#include <bit>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

constexpr auto block_values() {
    std::array<std::uint16_t, 1u << kXbwBlockBits> values{};
    std::array<std::uint16_t, 16> next{};
    for (unsigned k = 0; k < next.size(); ++k) next[k] = kXbwClassBegins[k];
    for (unsigned value = 0; value < values.size(); ++value)
        values[next[static_cast<unsigned>(std::popcount(value))]++] =
            static_cast<std::uint16_t>(value);
    return values;
}

constexpr std::uint64_t divided_up(std::uint64_t size, std::uint64_t by) {
    return (size + by - 1) / by;
}

/// Bytes of a string of bits and the zeros that are read behind it.
constexpr std::uint64_t with_zeros(std::uint64_t bits) {
    return divided_up(bits, 8) + 8;
}

}  // namespace

constexpr std::array<std::uint16_t, 1u << kXbwBlockBits> kXbwBlockValues = block_values();

XbwLayout xbw_layout_of(const TrieHeader& header, const XbwNumbers& numbers) {
    XbwLayout layout{};
    layout.words = header.words;
    layout.nodes = numbers.nodes;
    layout.symbols = header.symbols;
    layout.superblocks = static_cast<std::uint32_t>(divided_up(numbers.nodes, kXbwSuperblockBits));
    layout.row_cells = static_cast<std::uint32_t>(divided_up(header.symbols, 32));
    layout.stored = numbers.stored;
    layout.code_bits =
        header.words == 0 ? 0 : static_cast<std::uint32_t>(std::bit_width(header.words - 1));
    layout.shortcuts = numbers.shortcuts;
    layout.sample_groups =
        static_cast<std::uint32_t>(divided_up(layout.superblocks, kXbwSampleSuperblocks));
    layout.payload_bytes = numbers.payload;

    std::uint64_t end = sizeof(TrieHeader) + sizeof(XbwNumbers);
    const auto place = [&end](std::uint64_t size) {
        const std::uint64_t begin = end;
        end = divided_up(begin + size, 16) * 16;
        return begin;
    };
    layout.symbol_table = place(256);
    layout.begins = place(4 * (std::uint64_t{layout.symbols} + 1));
    layout.cells = place(sizeof(XbwCell) * layout.superblocks * layout.row_cells);
    layout.superblock_table = place(sizeof(XbwSuperblock) * layout.stored);
    layout.payload = place(layout.payload_bytes + 8);
    layout.ends = place(sizeof(XbwLine) * divided_up(layout.nodes, kXbwLineBits));
    layout.codes = place(with_zeros(std::uint64_t{layout.words} * layout.code_bits));
    layout.marks = place(sizeof(XbwLine) * divided_up(layout.words, kXbwLineBits));
    layout.shortcut_table = place(with_zeros(std::uint64_t{layout.shortcuts} * layout.code_bits));
    layout.samples = place(4 * std::uint64_t{layout.symbols} * layout.sample_groups);
    layout.bytes = end;
    return layout;
}

Result<XbwLayout> read_xbw_layout(std::span<const std::uint8_t> image) {
    if (image.size() < sizeof(TrieHeader) + sizeof(XbwNumbers))
        return broken_trie("it is shorter than its headers");
    const auto header = load_at<TrieHeader>(image.data());
    const auto numbers = load_at<XbwNumbers>(image.data() + sizeof header);
    if (header.symbols > 256 || header.symbol_bytes != 0 || header.words == UINT32_MAX ||
        numbers.nodes == 0 || numbers.nodes == UINT32_MAX || numbers.payload > kXbwMostPayload ||
        numbers.shortcuts > header.words)
        return broken_trie("its numbers are wrong");
    for (const std::uint32_t unused : numbers.unused)
        if (unused != 0) return broken_trie("its header is not as it is written");
    const XbwLayout layout = xbw_layout_of(header, numbers);
    if (layout.bytes != image.size()) return broken_trie("its parts do not fill it");
    return layout;
}

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
