// bench/word_bench.hpp - what benchmarks of dictionaries have in common: words, and how they are
// timed

#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace gputext::bench {

/// The different words of a file with a word a line, of which what follows a tab is ignored, in the
/// order of their bytes.
inline std::vector<std::string> read_words(const char* name) {
    std::vector<std::string> words;
    std::ifstream file(name);
    for (std::string line; std::getline(file, line);)
        words.push_back(line.substr(0, line.find('\t')));
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    return words;
}

/// The words in an order that is random and always the same.
inline std::vector<std::string_view> shuffled(const std::vector<std::string>& words) {
    std::vector<std::string_view> queries(words.begin(), words.end());
    std::shuffle(queries.begin(), queries.end(), std::mt19937_64(1));
    return queries;
}

/// Nanoseconds a word of the best of five runs.
template <class Work>
double best_of(std::size_t words, Work work) {
    double best = 1e9;
    for (int run = 0; run < 5; ++run) {
        const auto begin = std::chrono::steady_clock::now();
        work();
        const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
        best = std::min(best, passed.count());
    }
    return 1e9 * best / static_cast<double>(words);
}

inline void print(const char* what, std::size_t words, double bits, double build, double lookup,
                  double decode) {
    std::printf(
        "%s: %zu words, %.1f bits/word, build %.0f ns/word, lookup %.0f ns, decode %.0f ns\n", what,
        words, bits, build, lookup, decode);
}

}  // namespace gputext::bench
