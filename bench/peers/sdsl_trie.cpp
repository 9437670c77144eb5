// bench/peers/sdsl_trie.cpp - the paper's trie on sdsl's bit vectors: from words to node numbers
//
// Argument: a file with a word a line, of which what follows a tab is ignored.

#include <sdsl/bit_vectors.hpp>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/word_bench.hpp"
#include "cpp/trie/detail/xbw_nodes.hpp"

using namespace gputext;

namespace {

/// A bit vector a symbol, and whether a word ends in a node as one more.
template <class Vector>
class Nodes {
public:
    explicit Nodes(const XbwNodes& nodes) : begins_(nodes.begins) {
        symbol_of_.fill(-1);
        const std::size_t size = nodes.parents.size();
        for (std::size_t symbol = 0; symbol < nodes.alphabet.size(); ++symbol) {
            symbol_of_[nodes.alphabet[symbol]] = static_cast<int>(symbol);
            sdsl::bit_vector bits(size, 0);
            for (std::uint32_t y = begins_[symbol]; y < begins_[symbol + 1]; ++y)
                bits[nodes.parents[y]] = 1;
            children_.push_back(std::make_unique<Vector>(bits));
            ranks_.emplace_back(children_.back().get());
        }
    }

    std::uint64_t bytes() const {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < ranks_.size(); ++i)
            sum += sdsl::size_in_bytes(*children_[i]) + sdsl::size_in_bytes(ranks_[i]);
        return sum;
    }

    std::uint32_t find(std::string_view word) const {
        std::uint32_t node = 0;
        for (const char byte : word) {
            const int symbol = symbol_of_[static_cast<unsigned char>(byte)];
            if (symbol < 0 || !(*children_[symbol])[node]) return UINT32_MAX;
            node = begins_[symbol] + static_cast<std::uint32_t>(ranks_[symbol](node));
        }
        return node;
    }

private:
    std::array<int, 256> symbol_of_{};
    std::vector<std::uint32_t> begins_;
    std::vector<std::unique_ptr<Vector>> children_;
    std::vector<typename Vector::rank_1_type> ranks_;
};

template <class Vector>
void measure(const char* name, const XbwNodes& nodes,
             const std::vector<std::string_view>& queries) {
    std::unique_ptr<Nodes<Vector>> trie;
    const double build = bench::best_of(
        queries.size(), [&] { trie = std::make_unique<Nodes<Vector>>(nodes); }, 1);
    std::uint64_t sum = 0;
    const double lookup = bench::best_of(queries.size(), [&] {
        for (const std::string_view query : queries) sum += trie->find(query);
    });
    if (sum == 0) return;
    bench::print(name, queries.size(),
                 8.0 * static_cast<double>(trie->bytes()) / static_cast<double>(queries.size()),
                 build, lookup, 0);
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) return std::fprintf(stderr, "wanted: words\n"), 2;
    const std::vector<std::string> words = bench::read_words(arguments[1]);
    const std::vector<std::string_view> queries = bench::shuffled(words);
    Execution execution(1);
    const std::vector<std::string_view> views(words.begin(), words.end());
    const XbwNodes nodes = *number_xbw_nodes(views, execution);
    using Ints = sdsl::int_vector<>;
    measure<sdsl::rrr_vector<15, Ints, 16>>("sdsl rrr_vector<15>, to nodes", nodes, queries);
    measure<sdsl::sd_vector<>>("sdsl sd_vector, to nodes", nodes, queries);
}
