// bench/trie_bench.cpp - dictionaries: memory, and time to build, look up and decode, on one core
//
// Arguments: a file with a word a line, of which what follows a tab is ignored, and the word
// `peers` to measure std::unordered_map, a sorted array and the state transition table besides.

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bench/word_bench.hpp"
#include "cpp/trie/detail/xbw_layout.hpp"
#include "cpp/trie/detail/xbw_nodes.hpp"
#include "cpp/trie/trie.hpp"

using namespace gputext;

namespace {

using bench::best_of;
using bench::print;

/// Words that are looked up one by one, and decoded; more are built once.
constexpr std::size_t kMost = 1000000;

double bits_a_word(std::uint64_t bytes, std::size_t words) {
    return 8.0 * static_cast<double>(bytes) / static_cast<double>(words);
}

/// What an image of the paper's structure consists of.
void print_parts(const std::vector<std::uint8_t>& image) {
    const XbwLayout parts = *read_xbw_layout(image);
    const auto bits = [&](std::uint64_t begin, std::uint64_t end) {
        return bits_a_word(end - begin, parts.words);
    };
    std::printf(
        "gputext xbw, bits/word: %.1f the paper's trie (%.1f of it superblocks, %.1f blocks, %.1f "
        "where superblocks are), %.1f where words end, %.1f codes, %.1f ways back; %.2f "
        "nodes/word, "
        "%u symbols\n",
        bits(parts.symbol_table, parts.ends), bits(parts.superblock_table, parts.payload),
        bits(parts.payload, parts.ends), bits(parts.cells, parts.superblock_table),
        bits(parts.ends, parts.codes), bits(parts.codes, parts.marks),
        bits(parts.marks, parts.bytes),
        static_cast<double>(parts.nodes) / static_cast<double>(parts.words), parts.symbols);
}

/// The words that begin at each of the texts, which are all words one behind the other.
double measure_prefixes(const Trie& trie, const std::vector<std::string_view>& queries) {
    std::string text;
    for (const std::string_view query : queries) {
        if (text.size() > 4000000) break;
        text += query;
        text += ' ';
    }
    std::vector<PrefixWord> found;
    const std::size_t texts = std::min<std::size_t>(text.size(), 500000);
    std::size_t count = 0;
    const double time = best_of(texts, [&] {
        count = 0;
        for (std::size_t at = 0; at < texts; ++at) {
            trie.prefixes_of(std::string_view(text).substr(at), found);
            count += found.size();
        }
    });
    std::printf("gputext %s, prefixes_of: %.0f ns a text, %.2f words found\n",
                name_of(trie.stats().structure), time,
                static_cast<double>(count) / static_cast<double>(texts));
    return time;
}

int measure(TrieStructure structure, const std::vector<std::string_view>& queries) {
    Execution execution(1);
    std::vector<std::uint8_t> image;
    const std::string name = std::string("gputext ") + name_of(structure);
    const double build = best_of(
        queries.size(), [&] { image = *build_trie(structure, queries, execution); },
        queries.size() > kMost ? 1 : 5);
    const std::unique_ptr<Trie> trie = std::move(*open_trie(image));
    std::vector<std::uint32_t> codes(queries.size());
    const double lookup = best_of(queries.size(), [&] { trie->lookup(queries, codes); });
    const std::size_t some = std::min(queries.size(), kMost);
    const double single = best_of(some, [&] {
        for (std::size_t i = 0; i < some; ++i) codes[i] = trie->lookup(queries[i]);
    });
    std::string word(trie->stats().longest + Trie::kSlack, '\0');
    std::size_t bytes = 0;
    const double decode = best_of(some, [&] {
        for (std::size_t i = 0; i < some; ++i) bytes += trie->decode(codes[i], word.data());
    });
    for (std::size_t i = 0; i < some; ++i)
        if (trie->decode(codes[i]) != queries[i])
            return std::fprintf(stderr, "a word is not decoded as it was\n"), 1;
    print(name.c_str(), queries.size(), bits_a_word(image.size(), codes.size()), build, lookup,
          decode);
    std::printf("%s, one word a call: lookup %.0f ns\n", name.c_str(), single);
    if (structure == TrieStructure::xbw) print_parts(image);
    measure_prefixes(*trie, queries);
    return bytes == 0;
}

/// The paper's baseline (section 2.2.2): a table with the number of the next node for each node and
/// each symbol. Larger ones than 8 GB are not made.
int measure_table(const std::vector<std::string>& words,
                  const std::vector<std::string_view>& queries) {
    Execution execution(1);
    const std::vector<std::string_view> views(words.begin(), words.end());
    const XbwNodes nodes = *number_xbw_nodes(views, execution);
    const std::size_t symbols = nodes.alphabet.size();
    const std::uint64_t cells = std::uint64_t{symbols} * nodes.parents.size();
    const double bits = bits_a_word(4 * cells, words.size());
    if (4 * cells > std::uint64_t{8} << 30)
        return std::printf("state transition table, to nodes: %.0f bits/word, not made\n", bits), 0;
    std::vector<std::uint32_t> table(cells, UINT32_MAX);
    for (std::size_t symbol = 0; symbol < symbols; ++symbol)
        for (std::uint32_t node = nodes.begins[symbol]; node < nodes.begins[symbol + 1]; ++node)
            table[nodes.parents[node] * symbols + symbol] = node;
    std::array<std::uint8_t, 256> symbol_of{};
    for (std::size_t symbol = 0; symbol < symbols; ++symbol)
        symbol_of[nodes.alphabet[symbol]] = static_cast<std::uint8_t>(symbol);
    std::vector<std::uint32_t> found(queries.size());
    const double lookup = best_of(queries.size(), [&] {
        for (std::size_t i = 0; i < queries.size(); ++i) {
            std::uint32_t node = 0;
            for (const char byte : queries[i]) {
                node = table[node * symbols + symbol_of[static_cast<std::uint8_t>(byte)]];
                if (node == UINT32_MAX) break;
            }
            found[i] = node;
        }
    });
    for (const std::uint32_t node : found)
        if (node == UINT32_MAX) return std::fprintf(stderr, "a word is missing\n"), 1;
    print("state transition table, to nodes", words.size(), bits, 0, lookup, 0);
    return 0;
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
    for (const TrieStructure structure : kTrieStructures)
        if (const int failed = measure(structure, queries)) return failed;
    if (count == 2 || std::strcmp(arguments[2], "peers") != 0) return 0;
    if (const int failed = measure_table(words, queries)) return failed;
    measure_map(words, queries);
    measure_array(words, queries);
}
