// cpp/trie/detail/xbw.hpp - dictionary as a succinct trie (XBW): cpp/trie/detail/xbw_layout.hpp has
// its source and image
//
// A lookup takes a step of three reads for each byte. The words' codes are beside the trie, as its
// nodes are in another order; a decoded word is read from its node up to the root.

#pragma once

#include "cpp/trie/trie.hpp"

namespace gputext {

/// For build_trie(): of words in strict order. About 32 bytes a node meanwhile. Errors: cancelled;
/// invalid_argument for 2^32 - 1 nodes or more, or blocks that take more than 512 MB.
Result<std::vector<std::uint8_t>> build_xbw_trie(std::span<const std::string_view> words,
                                                 Execution& execution);

/// For open_trie(): of an image whose header has been read.
Result<std::unique_ptr<Trie>> open_xbw_trie(std::span<const std::uint8_t> image);

/// For validate_trie(), as open_xbw_trie(). Some 100 ns a node.
Status validate_xbw_trie(std::span<const std::uint8_t> image, Stop stop);

}  // namespace gputext
