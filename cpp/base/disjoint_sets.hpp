// cpp/base/disjoint_sets.hpp - connected components, by disjoint sets that threads join at a time

#pragma once

#include <atomic>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace gputext {

/// Nodes 0..n-1, each a component of its own until joined. A component is named by its smallest
/// node, so that the names depend neither on the order of joins nor on threads. Several threads may
/// call first() and join() at a time. O(log n) amortised for each call.
///
/// The trees are those of Tarjan and van Leeuwen, "Worst-case analysis of set union algorithms"
/// (J. ACM 31, 1984), with path halving and links to the smaller root. A root becomes a child by
/// compare and exchange, as in Anderson and Woll, "Wait-free parallel algorithms for the union-find
/// problem" (STOC 1991). A parent is never above its child, so that no circle can come about.
class DisjointSets {
public:
    explicit DisjointSets(std::size_t nodes) : parents_(nodes) {
        std::iota(parents_.begin(), parents_.end(), 0u);
    }
    /// Takes parents that are the nodes themselves, in memory of the caller's choice. A node that
    /// is never asked for may have any parent.
    explicit DisjointSets(std::vector<std::uint32_t> parents) : parents_(std::move(parents)) {}

    /// The smallest node of the component, as long as nobody joins it.
    std::uint32_t first(std::uint32_t node) {
        for (;;) {
            const std::uint32_t parent = load(node);
            if (parent == node) return node;
            const std::uint32_t above = load(parent);
            if (above == parent) return parent;
            // Another thread may have stored one that is higher up: this one is no less right.
            of(node).store(above, std::memory_order_relaxed);
            node = above;
        }
    }

    /// Whether they were in two components until now.
    bool join(std::uint32_t a, std::uint32_t b) {
        for (;;) {
            a = first(a);
            b = first(b);
            if (a == b) return false;
            if (a > b) std::swap(a, b);
            std::uint32_t root = b;
            if (of(b).compare_exchange_weak(root, a, std::memory_order_relaxed)) return true;
        }
    }

    /// Has the processor fetch the node, for a join soon after.
    void prefetch(std::uint32_t node) const { __builtin_prefetch(&parents_[node], 1); }

    /// For each node its parent, which is never above it, after the last join.
    std::vector<std::uint32_t> release() { return std::move(parents_); }

    /// For each node the smallest one of its component, after the last join. O(n).
    std::vector<std::uint32_t> firsts() {
        for (std::uint32_t& parent : parents_) parent = parents_[parent];
        return release();
    }

private:
    std::atomic_ref<std::uint32_t> of(std::uint32_t node) {
        return std::atomic_ref<std::uint32_t>(parents_[node]);
    }
    std::uint32_t load(std::uint32_t node) { return of(node).load(std::memory_order_relaxed); }

    std::vector<std::uint32_t> parents_;
};

}  // namespace gputext
