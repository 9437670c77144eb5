// cpp/trie/detail/xbw_steps.hpp - navigation between the nodes of an image of
// cpp/trie/detail/xbw_layout.hpp

#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cpp/trie/detail/xbw_layout.hpp"

namespace gputext {

/// A child, and what leads to it. No child: the node is kXbwNone.
struct XbwChild {
    std::uint32_t symbol = 0, node = kXbwNone;
};

/// In two versions, with and without the processor's instruction to count bits. All are for images
/// that are known to be right.
struct XbwSteps {
    /// nodes[i] becomes the node that words[i] leads to, or kXbwNone. Several words take their
    /// steps together, so that they wait for memory together.
    void (*walk)(const XbwImage& image, std::span<const std::string_view> words,
                 std::uint32_t* nodes);
    /// The child by one symbol. Three reads.
    std::uint32_t (*child)(const XbwImage& image, std::uint32_t node, std::uint32_t symbol);
    /// The child by the least symbol that is not below `from`. O(symbols of the node's superblock),
    /// which lie beside each other.
    XbwChild (*next_child)(const XbwImage& image, std::uint32_t node, std::uint32_t from);
    /// The child by the greatest symbol below `end`.
    XbwChild (*last_child)(const XbwImage& image, std::uint32_t node, std::uint32_t end);
    /// Parent of a node to which this symbol leads. O(log(nodes)) reads.
    std::uint32_t (*parent)(const XbwImage& image, std::uint32_t node, std::uint32_t symbol);
    /// How many bits of these lines are set below bit i, and whether it is set itself.
    std::uint32_t (*rank)(const XbwImage& image, std::uint64_t lines, std::uint32_t i, bool& set);
};

const XbwSteps& xbw_steps();

/// The symbol by which a node other than the root is reached. O(log(symbols)).
std::uint32_t xbw_symbol_of(const XbwImage& image, std::uint32_t node);

}  // namespace gputext
