// cpp/hnsw/graph.hpp - a graph of the kind that HNSW indexes search
//
// Source: Malkov, Yashunin, 2018, Efficient and robust approximate nearest neighbor search using
// hierarchical navigable small world graphs (layers, m and 2m neighbors).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gputext {

inline constexpr std::uint32_t kNoElement = UINT32_MAX;

/// A view of a graph, whose memory lies anywhere. Elements are numbered from 0. An element of level
/// l is in layers 0 to l. In layer 0 it has up to 2m neighbors, in each other one up to m; the
/// places that it does not need are kNoElement, and follow those that it does. A neighbor in a
/// layer is in this layer itself.
class HnswGraphView {
public:
    HnswGraphView() = default;
    /// The memory of another view, or a copy of it.
    HnswGraphView(unsigned m, std::uint32_t entry, std::span<const std::uint8_t> levels,
                  std::span<const std::uint64_t> upper_begins, std::span<const std::uint32_t> links)
        : m_(m), entry_(entry), levels_(levels), upper_begins_(upper_begins), links_(links) {}

    std::size_t size() const { return levels_.size(); }
    unsigned m() const { return m_; }
    unsigned level(std::size_t element) const { return levels_[element]; }
    /// Where searches begin: of the elements of the highest level the first one; kNoElement without
    /// elements.
    std::uint32_t entry() const { return entry_; }

    /// The most neighbors in a layer.
    std::size_t places(unsigned layer) const { return layer == 0 ? 2 * std::size_t{m_} : m_; }
    std::span<const std::uint32_t> neighbors(std::size_t element, unsigned layer) const {
        return links_.subspan(begin(element, layer), places(layer));
    }

    // Its memory

    std::span<const std::uint8_t> levels() const { return levels_; }
    std::span<const std::uint64_t> upper_begins() const { return upper_begins_; }
    std::span<const std::uint32_t> links() const { return links_; }

private:
    friend class HnswGraph;

    /// Layer 0 of all elements comes first, then the other layers of the elements that have them.
    std::size_t begin(std::size_t element, unsigned layer) const {
        return layer == 0 ? element * places(0) : upper_begins_[element] + (layer - 1) * places(1);
    }

    unsigned m_ = 0;
    std::uint32_t entry_ = kNoElement;
    std::span<const std::uint8_t> levels_;
    std::span<const std::uint64_t> upper_begins_;
    std::span<const std::uint32_t> links_;
};

/// A graph with its memory.
class HnswGraph {
public:
    HnswGraph() = default;
    /// Without neighbors so far. 8m bytes an element, and 4m for each further layer that it is in.
    HnswGraph(unsigned m, std::vector<std::uint8_t> levels);

    HnswGraphView view() const { return {m_, entry_, levels_, upper_begins_, links_}; }
    std::size_t size() const { return levels_.size(); }
    unsigned m() const { return m_; }
    unsigned level(std::size_t element) const { return levels_[element]; }
    std::uint32_t entry() const { return entry_; }
    std::size_t places(unsigned layer) const { return view().places(layer); }
    std::span<const std::uint32_t> neighbors(std::size_t element, unsigned layer) const {
        return view().neighbors(element, layer);
    }
    std::span<std::uint32_t> neighbors(std::size_t element, unsigned layer) {
        const HnswGraphView graph = view();
        return {links_.data() + graph.begin(element, layer), graph.places(layer)};
    }

private:
    unsigned m_ = 0;
    std::uint32_t entry_ = kNoElement;
    std::vector<std::uint8_t> levels_;
    std::vector<std::uint64_t> upper_begins_;
    std::vector<std::uint32_t> links_;
};

}  // namespace gputext
