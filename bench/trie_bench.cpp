// bench/trie_bench.cpp - dictionaries: memory, and time of building, lookup and decoding, on one
// core
//
// Arguments: a file with a word a line, of which what follows a tab is ignored, and the word
// `peers` to measure std::unordered_map and a sorted array besides.

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bench/word_bench.hpp"
#include "cpp/trie.hpp"

using namespace gputext;

namespace {

using bench::best_of;
using bench::print;

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
    const std::vector<std::string> words = bench::read_words(arguments[1]);
    const std::vector<std::string_view> queries = bench::shuffled(words);
    if (const int failed = measure_front(queries)) return failed;
    if (count == 2 || std::strcmp(arguments[2], "peers") != 0) return 0;
    measure_map(words, queries);
    measure_array(words, queries);
}
