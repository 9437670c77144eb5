// tests/fuzz/trie_seeds.hpp - seeds of the dictionary fuzzer: images of small dictionaries

#pragma once

#include <string>
#include <vector>

#include "cpp/trie/trie.hpp"

namespace gputext::testing {

inline std::vector<std::uint8_t> image_of(const std::vector<std::string>& words,
                                          TrieStructure structure) {
    Execution execution(1);
    return *build_trie(structure, {words.begin(), words.end()}, execution);
}

inline std::vector<std::vector<std::uint8_t>> trie_seeds(TrieStructure structure) {
    std::vector<std::string> numbers, nested;
    for (int i = 0; i < 100; ++i) {
        numbers.push_back("a longer prefix " + std::to_string(i));
        nested.emplace_back(static_cast<std::size_t>(10 * i), 'a');
    }
    std::vector<std::vector<std::uint8_t>> images;
    for (const auto& words :
         {std::vector<std::string>{}, {""}, {"aba", "ba", "bb", "cb", "cc"}, numbers, nested})
        images.push_back(image_of(words, structure));
    return images;
}

/// Seeds for all structures.
inline std::vector<std::vector<std::uint8_t>> trie_seeds() {
    std::vector<std::vector<std::uint8_t>> images;
    for (const TrieStructure structure : kTrieStructures)
        for (std::vector<std::uint8_t>& image : trie_seeds(structure))
            images.push_back(std::move(image));
    return images;
}

}  // namespace gputext::testing
