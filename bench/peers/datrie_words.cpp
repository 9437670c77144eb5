// bench/peers/datrie_words.cpp - the figures of bench/trie_bench.cpp for libdatrie, a double-array
// trie, which leads from words to codes alone
//
// Argument: a file with a word a line, of which what follows a tab is ignored.

#include <datrie/trie.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "bench/word_bench.hpp"

using namespace gputext::bench;

int main(int count, char** arguments) {
    if (count != 2) return std::fprintf(stderr, "wanted: words\n"), 2;
    const std::vector<std::string> words = read_words(arguments[1]);
    const std::vector<std::string_view> queries = shuffled(words);

    // Its characters are of 32 bits: bytes are widened before the time is taken.
    std::vector<std::vector<AlphaChar>> keys;
    const auto widened = [](std::string_view word) {
        std::vector<AlphaChar> key;
        for (const char byte : word) key.push_back(static_cast<unsigned char>(byte));
        key.push_back(0);
        return key;
    };
    for (const std::string& word : words) keys.push_back(widened(word));
    AlphaMap* const alphabet = alpha_map_new();
    alpha_map_add_range(alphabet, 1, 254);
    Trie* trie = nullptr;
    const double build = best_of(
        keys.size(),
        [&] {
            if (trie != nullptr) trie_free(trie);
            trie = trie_new(alphabet);
            for (std::size_t i = 0; i < keys.size(); ++i)
                trie_store(trie, keys[i].data(), static_cast<TrieData>(i));
        },
        1);
    keys.clear();
    for (const std::string_view query : queries) keys.push_back(widened(query));
    std::size_t found = 0;
    const double lookup = best_of(keys.size(), [&] {
        found = 0;
        for (const std::vector<AlphaChar>& key : keys) {
            TrieData code;
            found += trie_retrieve(trie, key.data(), &code) ? 1 : 0;
        }
    });
    if (found != keys.size()) return std::fprintf(stderr, "a word is missing\n"), 1;
    print("libdatrie, one way", keys.size(),
          8.0 * static_cast<double>(trie_get_serialized_size(trie)) /
              static_cast<double>(keys.size()),
          build, lookup, 0);
}
