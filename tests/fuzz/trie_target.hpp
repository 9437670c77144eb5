// tests/fuzz/trie_target.hpp - reads any bytes as the image of a dictionary

#pragma once

#include <cstdlib>
#include <cstring>

#include "cpp/trie/image.hpp"
#include "cpp/trie/trie.hpp"

namespace gputext::testing {

inline void require_trie(bool condition) {
    if (!condition) std::abort();
}

/// With a checksum and a size that fit: else nothing behind them would ever be looked at.
inline std::vector<std::uint8_t> with_checksum(std::span<const std::uint8_t> bytes) {
    std::vector<std::uint8_t> image(bytes.begin(), bytes.end());
    if (image.size() < sizeof(TrieHeader)) return image;
    TrieHeader header;
    std::memcpy(&header, image.data(), sizeof header);
    header.bytes = image.size();
    std::memcpy(image.data(), &header, sizeof header);
    header.checksum = trie_checksum(image);
    std::memcpy(image.data(), &header, sizeof header);
    return image;
}

/// An image that is accepted can be asked everything, and is a dictionary.
inline void read_trie(std::span<const std::uint8_t> bytes) {
    static_cast<void>(validate_trie(bytes).ok());
    // A vector of the exact size, so that a sanitizer sees reads behind its end.
    const std::vector<std::uint8_t> image = with_checksum(bytes);
    if (!validate_trie(image).ok()) return;
    const auto trie = open_trie(image);
    require_trie(trie.ok());
    const std::uint32_t words = (*trie)->stats().words;
    const auto cursor = (*trie)->cursor({0, words});
    std::string before;
    std::uint32_t code = 0;
    for (; cursor->next(); ++code) {
        const std::string word(cursor->word());
        require_trie(code == 0 || before < word);
        require_trie((*trie)->lookup(word) == code && (*trie)->decode(code) == word);
        require_trie((*trie)->lower_bound(word + '\0') == code + 1);
        const CodeRange range = (*trie)->prefix_range(word);
        require_trie(range.first == code && range.end > code && range.end <= words);
        std::vector<PrefixWord> found;
        (*trie)->prefixes_of(word, found);
        require_trie(!found.empty() && found.back().code == code);
        before = word;
    }
    require_trie(code == words);
}

}  // namespace gputext::testing
