// bench/peers/marisa_trie.cpp - the figures of bench/trie_bench.cpp for marisa-trie
//
// Argument: a file with a word a line, of which what follows a tab is ignored.

#include <marisa.h>

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

    marisa::Trie trie;
    const double build = best_of(queries.size(), [&] {
        marisa::Keyset keys;
        for (const std::string_view word : queries) keys.push_back(word.data(), word.size());
        trie.build(keys);
    });
    marisa::Agent agent;
    std::vector<std::size_t> codes(queries.size());
    const double lookup = best_of(queries.size(), [&] {
        for (std::size_t i = 0; i < queries.size(); ++i) {
            agent.set_query(queries[i].data(), queries[i].size());
            trie.lookup(agent);
            codes[i] = agent.key().id();
        }
    });
    std::size_t bytes = 0;
    const double decode = best_of(queries.size(), [&] {
        for (const std::size_t code : codes) {
            agent.set_query(code);
            trie.reverse_lookup(agent);
            bytes += agent.key().length();
        }
    });
    print("marisa-trie", queries.size(),
          8.0 * static_cast<double>(trie.io_size()) / static_cast<double>(queries.size()), build,
          lookup, decode);
    return bytes == 0;
}
