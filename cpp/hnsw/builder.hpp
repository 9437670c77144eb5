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
//   - In each of its layers, the candidates of e are the nearest of the elements of that layer
//     before it, by (distance, number). In a layer of more than `exact_rows` elements, those that
//     follow the first exact_rows form blocks of `probing_rows`. Of the elements before its block,
//     only those are candidates of e whose own cluster is one that e probes
//     (detail/probed_clusters.hpp). The first elements keep the long links between clusters. Not by
//     inner products, of which clusters tell little.
//   - Choose(list, limit, slack), with a list in the order of (distance, number): a candidate is
//     chosen unless one that was chosen before is at most distance / slack from it; if then fewer
//     than the limit are chosen, others of the list are, too, in its order (algorithm 4, with
//     keepPrunedConnections; Subramanya et al., 2019, DiskANN, for the slack).
//   - e links to Choose(candidates, places, 1). Its neighbors are Choose(the elements that it links
//     to and those that link to it, places, slack), where the original prunes after each link: with
//     17/16, or 1 for inner products, of which a part of one is no nearer.
//
// Further elements with the value of an element e, if any, are in layer 0 only. Equal elements are
// a chain: e, then the others in their order. Each has as neighbors up to m / 2 of the chain before
// it and as many after it, nearest first, and then the first neighbors that e has for itself. With
// links to each other alone they would be an island.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/hnsw/detail/probed_clusters.hpp"
#include "cpp/hnsw/graph.hpp"
#include "cpp/knn/distinct_rows.hpp"
#include "cpp/knn/knn.hpp"

namespace gputext {

struct HnswParameters {
    unsigned m = 16;  // at least 2
    /// Nearest elements before an element, among which its neighbors are chosen; at least 1.
    std::size_t candidates = 128;
    Metric metric = Metric::euclidean;
    unsigned highest_level = 255;
    /// Bytes that searches may take beside the values: KnnParameters::memory_limit.
    std::size_t memory_limit = std::size_t{1} << 30;
    /// Elements of a layer that are compared with all before them, and blocks of the others.
    std::size_t exact_rows = std::size_t{1} << 18, probing_rows = std::size_t{1} << 14;
    /// Elements that are searched for together. The graph does not depend on it.
    std::size_t block_rows = 16384;
    /// Elements before a block are searched in by as many whole parts of so many elements as there
    /// are, which may lie in files, and then by the rest. The graph does not depend on it.
    std::size_t part_rows = SIZE_MAX;
    Simd simd = best_simd_with_bfloat16();
};

/// Makes a graph step by step, so that whoever calls it can leave searches of blocks to a device:
///
///     Status status = builder.begin(execution);
///     while (builder.has_block()) {
///         while (builder.has_search())
///             builder.add(knn(builder.search(), builder.queries(), builder.items(), {}, ...));
///         builder.end_block(execution);
///     }
///     graph = builder.take();
///
/// Time: elements^2 / 2 * dimensions operations of the search's filter, some hundred exact
/// distances an element to choose neighbors. Memory: 32m bytes an element beside the graph's, a
/// copy of the values of elements above layer 0, and 16 bytes for each candidate of a block.
class HnswBuilder {
public:
    /// Rows of `values` from 0 on are distinct; the last copy_of.size() ones have the values of the
    /// rows that copy_of names, each below the number of distinct rows. Values are dense and
    /// finite, for metric cosine not zero. What is passed outlives the builder.
    HnswBuilder(const HnswParameters& parameters, const Vectors& values,
                std::span<const std::uint32_t> copy_of);

    /// Errors of this and the following: cancelled, out_of_memory.
    Status begin(Execution& execution);

    bool has_block() const { return !done_; }
    /// Whether there are items left to be searched in for rows of this block: the rows before it,
    /// unless the block probes clusters, and then for the second half of the block its first one,
    /// and the same within each half.
    bool has_search() const { return next_search_ < searches_.size(); }
    KnnParameters search() const;
    Vectors queries() const;
    Vectors items() const;
    /// Of each query, beyond which no item counts: knn_nearer() takes them, and saves time.
    std::vector<double> radii() const;
    /// Which elements these are, where that is known: in layer 0.
    struct Range {
        std::size_t begin, end;
    };
    std::optional<Range> query_elements() const;
    std::optional<Range> item_elements() const;
    /// What the search has found.
    Status add(const Neighbors& found, Execution& execution);
    /// Requires that there is no search left.
    Status end_block(Execution& execution);

    /// For all layers: elements whose candidates are known, and the number of all.
    std::uint64_t searched() const { return searched_; }
    std::uint64_t to_search() const { return to_search_; }

    HnswGraph take() { return std::move(graph_); }

private:
    struct Near {
        double distance;
        std::uint32_t row;

        bool operator<(const Near& other) const {
            return distance != other.distance ? distance < other.distance : row < other.row;
        }
    };
    class Chooser;

    std::size_t rows() const { return values_.rows; }
    /// Whether the block's rows probe clusters of the rows before it.
    bool probes() const { return !clusters_.empty() && block_begin_ >= parameters_.exact_rows; }
    std::size_t end_of_block() const;
    void begin_block(std::size_t begin);
    void search_halves(std::size_t begin, std::size_t end);
    Vectors rows_of(std::size_t begin, std::size_t end) const {
        return RowRange(values_, begin, end).vectors();
    }
    std::span<std::uint32_t> links_of(std::size_t row) {
        return std::span(links_).subspan(row * places_, places_);
    }
    std::span<double> link_distances_of(std::size_t row) {
        return std::span(link_distances_).subspan(row * places_, places_);
    }
    void add(std::size_t row, std::span<const Near> found);
    /// What was found for a query, whose items are the rows that number(item) says.
    template <class Number>
    void add(std::size_t row, const Neighbors& found, std::size_t query, const Number& number);
    /// Rows that are farther are no candidates of the row any more.
    double radius_of(std::size_t row) const;
    std::vector<double> radii_of(std::size_t begin, std::size_t end) const;
    Status search_nearer(std::size_t begin, std::size_t end, std::size_t item_begin,
                         Execution& execution);
    Status begin_layer(unsigned layer, Execution& execution);
    Status search_clusters(Execution& execution);
    Status search_cluster(std::size_t cluster, std::span<const std::uint32_t> probing,
                          Execution& part);
    Status link_rows(std::size_t begin, std::size_t end, Chooser& chooser, Execution& part);
    Status link_back(Execution& execution);
    Status link_copies(Execution& execution);

    HnswParameters parameters_;
    Vectors all_values_;
    std::span<const std::uint32_t> copy_of_;
    std::size_t distinct_;
    HnswGraph graph_;
    bool done_ = false;
    std::uint64_t searched_ = 0, to_search_ = 0;

    // The layer: its elements, ascending, and their values row by row
    unsigned layer_ = 0;
    std::size_t places_ = 0;
    std::vector<std::uint32_t> members_;
    GatheredRows gathered_;
    Vectors values_;
    ProbedClusters clusters_;  // none in a layer that is searched exactly
    // Of each row to rows before it, with the distances
    std::vector<std::uint32_t> links_;
    std::vector<double> link_distances_;

    // The block
    struct Search {
        Range queries, items;  // rows
    };
    std::size_t block_begin_ = 0, block_end_ = 0;
    std::vector<Search> searches_;
    std::size_t next_search_ = 0;
    std::vector<std::vector<Near>> nearest_;
    std::array<std::mutex, 64> mutexes_;  // of nearest_, one for many rows
};

}  // namespace gputext
