// cpp/trie/detail/xbw_nodes.hpp - numbers the nodes of a trie in the order of their prefixes read
// backwards

#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// The trie of some words as cpp/trie/detail/xbw_layout.hpp numbers its nodes.
struct XbwNodes {
    std::vector<std::uint8_t> alphabet;     // the byte of each symbol, ascending
    std::vector<std::uint32_t> begins;      // the first node of each symbol, and how many there are
    std::vector<std::uint32_t> parents;     // of each node; 0 for the root
    std::vector<std::uint32_t> word_nodes;  // where each word ends
    std::uint64_t text_bytes = 0;
    std::uint32_t longest = 0;
};

/// Numbers the nodes of the trie of words in strict order. No tree is built: all prefixes are
/// sorted by their last 64 / log2(symbols) bytes, and equal ones by twice as many bytes in each
/// further round, by the order of the prefixes that are shorter by so many (prefix doubling, as in
/// Manber, Myers, "Suffix arrays", 1993). O(nodes log nodes) time a round, log2(longest) rounds at
/// most, on the execution's threads; about 32 bytes a node. Errors: cancelled; invalid_argument for
/// 2^32 - 1 nodes or more.
Result<XbwNodes> number_xbw_nodes(std::span<const std::string_view> words, Execution& execution);

}  // namespace gputext
