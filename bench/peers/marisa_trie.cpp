// bench/peers/marisa_trie.cpp - the figures of bench/trie_bench.cpp for marisa-trie
//
// Argument: a file with a word a line, of which what follows a tab is ignored.

#include <marisa.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kRuns = 5;

template <class Work>
double best_of(std::size_t words, Work work) {
    double best = 1e9;
    for (int run = 0; run < kRuns; ++run) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        best = std::min(best, passed.count());
    }
    return 1e9 * best / static_cast<double>(words);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return std::fprintf(stderr, "wanted: words\n"), 2;
    std::vector<std::string> words;
    std::ifstream file(arguments[1]);
    for (std::string line; std::getline(file, line);)
        words.push_back(line.substr(0, line.find('\t')));
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::vector<std::string_view> queries(words.begin(), words.end());
    std::shuffle(queries.begin(), queries.end(), std::mt19937_64(1));

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
    std::printf(
        "marisa-trie: %zu words, %.1f bits/word, build %.0f ns/word, lookup %.0f ns, "
        "decode %.0f ns\n",
        queries.size(),
        8.0 * static_cast<double>(trie.io_size()) / static_cast<double>(queries.size()), build,
        lookup, decode);
    return bytes == 0;
}
