// cpp/index_pair.hpp - pairs of positions in an input, collected by several threads

#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/status.hpp"
#include "cpp/stop.hpp"

namespace gputext {

/// Two positions of an input, first < second.
struct IndexPair {
    std::uint32_t first;
    std::uint32_t second;

    auto operator<=>(const IndexPair&) const = default;
};

/// Pairs found by several threads, each into a list of its own. Kept as first << 32 | second.
class PairLists {
public:
    explicit PairLists(unsigned threads) : lists_(threads) {}

    /// Adds the pair of two different positions, in any order.
    void add(unsigned worker, std::uint32_t a, std::uint32_t b) {
        const auto [first, second] = std::minmax(a, b);
        lists_[worker].push_back(std::uint64_t{first} << 32 | second);
    }

    /// All of them, ascending, each once; the lists are empty then. Error: cancelled.
    Status take(std::vector<IndexPair>& pairs, Stop stop);

private:
    std::vector<std::vector<std::uint64_t>> lists_;
};

}  // namespace gputext
