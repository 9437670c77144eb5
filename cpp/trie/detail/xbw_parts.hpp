// cpp/trie/detail/xbw_parts.hpp - builds the parts of an image of cpp/trie/detail/xbw_layout.hpp
// that follow from other parts

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/stop.hpp"
#include "cpp/trie/detail/xbw_layout.hpp"

namespace gputext {

/// The lines of a bit vector, all bits zero.
std::vector<XbwLine> xbw_lines(std::uint32_t size);

inline void set_bit(std::vector<XbwLine>& lines, std::uint32_t i) {
    lines[i / kXbwLineBits].bits[i % kXbwLineBits / 32] |= 1u << i % kXbwLineBits % 32;
}
inline bool has_bit(const std::vector<XbwLine>& lines, std::uint32_t i) {
    return (lines[i / kXbwLineBits].bits[i % kXbwLineBits / 32] >> i % kXbwLineBits % 32 & 1) != 0;
}

/// Once all bits are set: counts them. Returns how many there are.
std::uint32_t count_lines(std::vector<XbwLine>& lines);
/// In lines that have been counted.
std::uint32_t rank_in(const std::vector<XbwLine>& lines, std::uint32_t i);

/// Writes number i of `bits` bits to zeros.
void pack_number(std::uint8_t* to, std::uint64_t i, std::uint32_t bits, std::uint32_t number);

/// What leads from a code back to its word: `marks` and `shortcuts` of the layout.
struct CodeShortcuts {
    std::vector<XbwLine> marks;
    std::vector<std::uint32_t> targets;
};

/// Shortcuts for the codes of all words in the order of nodes, a permutation. O(words) time, with
/// reads at random places; false when stopped.
bool find_shortcuts(std::span<const std::uint32_t> codes, CodeShortcuts& found, Stop stop);

}  // namespace gputext
