// cpp/hnsw/builder.hpp - makes the graph of an HNSW index from exact nearest neighbors
//
// Source: Malkov, Yashunin, 2018 (as graph.hpp), algorithms 1 and 4. There an element is inserted
// by a search of the graph so far, which finds most of the nearest elements before it. Here the
// candidates are the nearest elements before it, exactly, as a search with an unlimited list finds
// them. So an element's neighbors do not depend on the graph, all elements are independent of each
// other, and the graph is a function of the values, the metric and the parameters, to the bit: not
// of threads or devices.
//
// Elements with distinct values:
//   - The level of element e is the number of layers l >= 1 for which r(e) < 2^64 / m^l, rounded
//     down, where r(e) = random_bits(random_key(0, 0x686e7377, m), e) of
//     cpp/base/counter_random.hpp; at most the highest level.
//   - In each of its layers, its candidates are elements of that layer before it. These, what e
//     links to, and its neighbors are as cpp/hnsw/links.hpp says. Clusters are those of a layer of
//     more than `exact_rows` elements. By inner products, of which clusters tell little, there are
//     none.
//
// Further elements with the value of an element e, if any, are in layer 0 only. Equal elements are
// a chain: e, then the others in their order. Each has as neighbors up to m / 2 of the chain before
// it and as many after it, nearest first, and then the first neighbors that e has for itself. With
// links to each other alone they would be an island.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/hnsw/graph.hpp"
#include "cpp/hnsw/links.hpp"
#include "cpp/knn/distinct_rows.hpp"

namespace gputext {

struct HnswParameters {
    unsigned m = 16;  // at least 2
    /// Of all layers, but for `places`.
    HnswLinkParameters links;
    unsigned highest_level = 255;
};

/// Makes a graph layer by layer, so that whoever calls it can leave the work to a device:
///
///     Status status = builder.begin(execution);
///     while (builder.has_layer())
///         builder.add(link_layer(builder.layer(), execution), execution);
///     graph = builder.take();
///
/// Time: that of link_layer(). Memory: 32m bytes an element beside the graph's, a copy of the
/// values of elements above layer 0, and 16 bytes for each candidate of a block.
class HnswBuilder {
public:
    /// Rows of `values` from 0 on are distinct; the last copy_of.size() ones have the values of the
    /// rows that copy_of names, each below the number of distinct rows. Values are dense and
    /// finite, for metric cosine not zero. What is passed outlives the builder.
    HnswBuilder(const HnswParameters& parameters, const Vectors& values,
                std::span<const std::uint32_t> copy_of);

    /// Errors of this and of add(): cancelled, out_of_memory.
    Status begin(Execution& execution);

    bool has_layer() const { return !done_; }
    /// What is to be computed. Its values are the first rows of all in layer 0, copies above.
    LayerToLink layer() const;
    bool layer_is_lowest() const { return layer_ == 0; }
    /// Takes the neighbors of the layer's rows.
    Status add(std::span<const std::uint32_t> neighbors, Execution& execution);

    /// For all layers: elements whose neighbors are known, and the number of all.
    std::uint64_t linked() const { return linked_; }
    std::uint64_t to_link() const { return to_link_; }

    /// The levels of its elements are there after begin().
    HnswGraphView graph() const { return graph_.view(); }
    HnswGraph take() { return std::move(graph_); }

private:
    std::size_t rows() const { return values_.rows; }
    Status begin_layer(unsigned layer, Execution& execution);
    Status link_copies(Execution& execution);

    HnswParameters parameters_;
    Vectors all_values_;
    std::span<const std::uint32_t> copy_of_;
    std::size_t distinct_;
    HnswGraph graph_;
    bool done_ = false;
    std::uint64_t linked_ = 0, to_link_ = 0;

    // The layer: its elements, ascending, and their values row by row
    unsigned layer_ = 0;
    HnswLinkParameters link_parameters_;
    std::vector<std::uint32_t> members_;
    GatheredRows gathered_;
    Vectors values_;
    std::vector<float> centroids_;  // none in a layer whose rows are compared with all before them
};

}  // namespace gputext
