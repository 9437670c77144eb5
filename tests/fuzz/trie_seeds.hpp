// tests/fuzz/trie_seeds.hpp - images of small dictionaries to begin with

#pragma once

#include <string>
#include <vector>

#include "cpp/trie.hpp"

namespace gputext::testing {

inline std::vector<std::uint8_t> image_of(const std::vector<std::string>& words) {
    Execution execution(1);
    return *build_trie(TrieStructure::front, {words.begin(), words.end()}, execution);
}

inline std::vector<std::vector<std::uint8_t>> trie_seeds() {
    std::vector<std::string> numbers, nested;
    for (int i = 0; i < 100; ++i) {
        numbers.push_back("a longer prefix " + std::to_string(i));
        nested.emplace_back(static_cast<std::size_t>(10 * i), 'a');
    }
    return {image_of({}), image_of({""}), image_of({"aba", "ba", "bb", "cb", "cc"}),
            image_of(numbers), image_of(nested)};
}

}  // namespace gputext::testing
