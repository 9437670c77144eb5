// bench/word_bench.hpp - shared code of the benchmarks of dictionaries: words and timing

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ctime>
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

/// Nanoseconds of the processor's time a word, of the best of some runs; what else the machine does
/// counts less so. For work on one thread.
template <class Work>
double best_of(std::size_t words, Work work, int runs = 5) {
    double best = 1e9;
    for (int run = 0; run < runs; ++run) {
        const std::clock_t begin = std::clock();
        work();
        best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
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
