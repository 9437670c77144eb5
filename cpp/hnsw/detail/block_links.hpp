// cpp/hnsw/detail/block_links.hpp - the candidates of a block of rows, and their links
//
// Rows before the block are searched for all of its rows at once. In itself a block is searched by
// halves, by halves of these, and so on: the first one for rows of the second one. What is left at
// the end, stretches of few rows, threads search for themselves, each for a leaf of a stretch.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "cpp/hnsw/detail/chooser.hpp"
#include "cpp/hnsw/links.hpp"

namespace gputext {

/// Rows of a block are linked in parts of so many.
inline constexpr std::size_t kLeafRows = 256;

/// How to search for one block among rows before, where that is not all of them.
class BlockLinks {
public:
    /// `values` are the layer's, and outlive the object as the parameters do.
    BlockLinks(const HnswLinkParameters& parameters, const Vectors& values, const LayerRows& block)
        : parameters_(parameters), values_(values), block_(block), nearest_(block.size()) {}

    KnnParameters search_parameters() const;

    /// Adds the rows of `items` that are nearest to each of `queries`, rows of the block, by
    /// `search`. Errors: its, cancelled, out_of_memory.
    Status search(const LayerRows& queries, const LayerRows& items, Execution& execution,
                  const RadiusSearch& search);
    /// Searches the block in itself, but for stretches.
    Status search_halves(Execution& execution, const RadiusSearch& search) {
        return search_halves(block_, execution, search);
    }
    /// The same for some rows of the block among any rows before it; from any thread. Not beside
    /// the functions above.
    Status search_some(std::span<const std::uint32_t> queries, std::span<const std::uint32_t> items,
                       Execution& execution);

    /// Searches what is left, and writes the links of the block's rows. `done`: rows of all that
    /// are linked already. Errors: cancelled, out_of_memory.
    Status link(const HnswLinks& links, std::uint64_t done, std::uint64_t all,
                Execution& execution);

private:
    Status search_halves(const LayerRows& rows, Execution& execution, const RadiusSearch& search);
    /// Of the nearest that are known, and these, of which both are sorted.
    void add(std::size_t row, std::span<const NearRow> found);
    /// What was found for a query, whose items are the rows that number(item) says.
    template <class Number>
    void add(std::size_t row, const Neighbors& found, std::size_t query, const Number& number);
    /// Rows that are farther are no candidates of the row any more.
    double radius_of(std::size_t row) const;
    std::vector<double> radii_of(const LayerRows& rows) const;
    Status link_leaf(const LayerRows& leaf, Chooser& chooser, const HnswLinks& links,
                     Execution& part);

    const HnswLinkParameters& parameters_;
    const Vectors& values_;
    LayerRows block_;
    std::vector<std::vector<NearRow>> nearest_;
    std::array<std::mutex, 64> mutexes_;  // of nearest_, one for many rows; for search_some()
};

}  // namespace gputext
