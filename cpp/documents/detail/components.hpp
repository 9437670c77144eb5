// cpp/documents/detail/components.hpp - connected components, by disjoint sets

#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace gputext {

/// Nodes 0..n-1, each a component of its own until joined. A component is named by its smallest
/// node. O(log n) amortised for each call but firsts(), which is O(n log n).
class Components {
public:
    explicit Components(std::size_t nodes) : parent_(nodes) {
        std::iota(parent_.begin(), parent_.end(), 0u);
    }

    std::uint32_t first(std::uint32_t node) {
        while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
        return node;
    }

    void join(std::uint32_t a, std::uint32_t b) {
        a = first(a);
        b = first(b);
        if (a > b) std::swap(a, b);
        parent_[b] = a;
    }

    /// For each node the smallest one of its component.
    std::vector<std::uint32_t> firsts() {
        for (std::uint32_t node = 0; node < parent_.size(); ++node) parent_[node] = first(node);
        return parent_;
    }

private:
    std::vector<std::uint32_t> parent_;
};

}  // namespace gputext
