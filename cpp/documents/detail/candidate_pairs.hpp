// cpp/documents/detail/candidate_pairs.hpp - pairs of documents while a search runs

#pragma once

#include <algorithm>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/disjoint_sets.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/distinct_documents.hpp"

namespace gputext {

// ---- Pairs of positions in an input, collected by several threads ----

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

    /// Moves all pairs into `pairs`, ascending, each once. Error: cancelled.
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

// ---- The near pairs that a search wants, which may become fewer while it runs ----
//
// Of documents with sets (DistinctDocuments::sets) only pairs that connect sets are wanted. Each
// near pair that is taken makes one set of two, and pairs within a set are neither verified nor
// kept: fewer pairs than documents are taken. Which ones depends on threads, but not what they
// connect, as long as no wanted pair is left out.

/// Several threads may ask and take pairs at a time. Pairs are those of positions.
class WantedPairs {
public:
    explicit WantedPairs(const DistinctDocuments& documents);

    /// From here on only pairs whose signatures are within the rate are taken. For documents with
    /// sets, where a pair that is taken must be one of the answer.
    void require_near_signatures(std::span<const Ctph> signatures, double rate) {
        signatures_ = signatures;
        rate_ = rate;
    }

    bool connect_sets() const { return connect_sets_; }

    /// Whether a pair is across the sides is left to the search.
    bool wants(std::uint32_t first, std::uint32_t second) {
        return !connect_sets_ || sets_.first(first) != sets_.first(second);
    }

    /// O(length^2 / 64) for signatures, so to be asked for a pair that is wanted.
    bool are_signatures_near(std::uint32_t first, std::uint32_t second) const {
        return signatures_.empty() || edit_rate(signatures_[first], signatures_[second]) <= rate_;
    }

    /// Whether a near pair is one of the answer.
    bool take(std::uint32_t first, std::uint32_t second) {
        if (!connect_sets_) return true;
        if (!are_signatures_near(first, second) || !sets_.join(first, second)) return false;
        set_count_.fetch_sub(1, std::memory_order_relaxed);
        return true;
    }

    /// Whether no pair is wanted any more.
    bool none_left() const {
        return connect_sets_ && set_count_.load(std::memory_order_relaxed) <= 1;
    }

    /// Where pairs of places are verified together, each of them a document by `documents`: drops
    /// those that are not wanted, and moves those to the front that would be wanted even if all of
    /// these turned out near. Returns how many are in front: fewer than documents. O(documents +
    /// pairs), by the thread that alone takes pairs.
    std::size_t put_forest_first(std::span<const std::uint32_t> documents,
                                 std::vector<IndexPair>& pairs);

private:
    const bool connect_sets_;
    DisjointSets sets_;
    std::atomic<std::size_t> set_count_;
    std::span<const Ctph> signatures_;  // or none
    double rate_ = 1;
};

}  // namespace gputext
