// bench/trie_bench.cpp - dictionaries: memory, and time of building, lookup and decoding, on one
// core
//
// Arguments: a file with a word a line, of which what follows a tab is ignored, and the word
// `peers` to measure std::unordered_map and a sorted array besides.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "cpp/trie.hpp"

using namespace gputext;

namespace {

constexpr int kRuns = 5;

/// Nanoseconds a word of the best run.
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

void print(const char* what, std::size_t words, double bits, double build, double lookup,
           double decode) {
    std::printf(
        "%s: %zu words, %.1f bits/word, build %.0f ns/word, lookup %.0f ns, decode %.0f ns\n", what,
        words, bits, build, lookup, decode);
}

std::vector<std::string> read_words(const char* name) {
    std::vector<std::string> words;
    std::ifstream file(name);
    for (std::string line; std::getline(file, line);)
        words.push_back(line.substr(0, line.find('\t')));
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    return words;
}

int measure_front(const std::vector<std::string_view>& queries) {
    Execution execution(1);
    std::vector<std::uint8_t> image;
    const double build = best_of(
        queries.size(), [&] { image = *build_trie(TrieStructure::front, queries, execution); });
    const std::unique_ptr<Trie> trie = std::move(*open_trie(image));
    std::vector<std::uint32_t> codes(queries.size());
    const double lookup = best_of(queries.size(), [&] { trie->lookup(queries, codes); });
    const double single = best_of(queries.size(), [&] {
        for (std::size_t i = 0; i < queries.size(); ++i) codes[i] = trie->lookup(queries[i]);
    });
    std::string word(trie->stats().longest + Trie::kSlack, '\0');
    std::size_t bytes = 0;
    const double decode = best_of(queries.size(), [&] {
        for (const std::uint32_t code : codes) bytes += trie->decode(code, word.data());
    });
    for (std::size_t i = 0; i < queries.size(); ++i)
        if (trie->decode(codes[i]) != queries[i])
            return std::fprintf(stderr, "a word is not decoded as it was\n"), 1;
    const double bits = 8.0 * static_cast<double>(image.size()) / static_cast<double>(codes.size());
    print("gputext front", queries.size(), bits, build, lookup, decode);
    std::printf("gputext front, one word a call: lookup %.0f ns\n", single);
    return bytes == 0;
}

void measure_map(const std::vector<std::string>& words,
                 const std::vector<std::string_view>& queries) {
    std::unordered_map<std::string_view, std::uint32_t> map;
    const double build = best_of(words.size(), [&] {
        map = {};
        for (std::uint32_t i = 0; i < words.size(); ++i) map.emplace(words[i], i);
    });
    std::size_t bytes = map.bucket_count() * sizeof(void*);
    // What a node holds, its link and hash, and what malloc adds.
    for (const std::string& word : words) bytes += 24 + 16 + 8 + word.size();
    std::uint64_t sum = 0;
    const double lookup = best_of(words.size(), [&] {
        for (const std::string_view query : queries) sum += map.find(query)->second;
    });
    if (sum == 0) return;
    print("std::unordered_map, one way", words.size(),
          8.0 * static_cast<double>(bytes) / static_cast<double>(words.size()), build, lookup, 0);
}

/// The words one behind the other, and where they begin.
void measure_array(const std::vector<std::string>& words,
                   const std::vector<std::string_view>& queries) {
    std::string text;
    std::vector<std::uint32_t> begins{0};
    for (const std::string& word : words) {
        text += word;
        begins.push_back(static_cast<std::uint32_t>(text.size()));
    }
    const auto word_at = [&](std::size_t i) {
        return std::string_view(text).substr(begins[i], begins[i + 1] - begins[i]);
    };
    std::vector<std::uint32_t> codes(queries.size());
    const double lookup = best_of(words.size(), [&] {
        for (std::size_t i = 0; i < queries.size(); ++i) {
            std::size_t first = 0, end = words.size();
            while (end - first > 1) {
                const std::size_t middle = first + (end - first) / 2;
                (word_at(middle) <= queries[i] ? first : end) = middle;
            }
            codes[i] = static_cast<std::uint32_t>(first);
        }
    });
    std::size_t bytes = 0;
    std::vector<char> out(std::size_t{1} << 21);
    const double decode = best_of(words.size(), [&] {
        for (const std::uint32_t code : codes) {
            const std::string_view word = word_at(code);
            std::memcpy(out.data(), word.data(), word.size());
            bytes += word.size();
        }
    });
    if (bytes == 0) return;
    print("sorted array", words.size(),
          8.0 * static_cast<double>(text.size() + 4 * begins.size()) /
              static_cast<double>(words.size()),
          0, lookup, decode);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) return std::fprintf(stderr, "wanted: words [peers]\n"), 2;
    const std::vector<std::string> words = read_words(arguments[1]);
    std::vector<std::string_view> queries(words.begin(), words.end());
    std::shuffle(queries.begin(), queries.end(), std::mt19937_64(1));
    if (const int failed = measure_front(queries)) return failed;
    if (count == 2 || std::strcmp(arguments[2], "peers") != 0) return 0;
    measure_map(words, queries);
    measure_array(words, queries);
}
