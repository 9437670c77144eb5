// cpp/documents/detail/index_pair.hpp - pairs of positions in an input, collected by several
// threads

#pragma once

#include <algorithm>
#include <atomic>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"

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
    /// More than `most` pairs are not wanted.
    explicit PairLists(unsigned threads, std::uint64_t most = UINT64_MAX)
        : lists_(threads), most_(most) {}

    /// Adds the pair of two different positions, in any order.
    void add(unsigned worker, std::uint32_t a, std::uint32_t b) {
        const auto [first, second] = std::minmax(a, b);
        lists_[worker].pairs.push_back(std::uint64_t{first} << 32 | second);
    }

    /// Whether there are more than are wanted. Cheap enough to be asked every few hundred pairs.
    bool too_many(unsigned worker) {
        List& list = lists_[worker];
        const std::size_t added = list.pairs.size() - list.counted;
        if (added > 0) count_.fetch_add(added, std::memory_order_relaxed);
        list.counted = list.pairs.size();
        return count_.load(std::memory_order_relaxed) > most_;
    }

    /// All of them, ascending, each once; the lists are empty then. Error: cancelled.
    Status take(std::vector<IndexPair>& pairs, Stop stop);

private:
    struct List {
        std::vector<std::uint64_t> pairs;
        std::size_t counted = 0;
    };
    std::vector<List> lists_;
    const std::uint64_t most_;
    std::atomic<std::uint64_t> count_{0};
};

}  // namespace gputext
