// cpp/knn/detail/row_panels.hpp - rows as the filter reads them: converted, sorted by norm, in
// panels

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/detail/filter_space.hpp"

namespace gputext {

/// Rows in the order of their norms, so that those of a tile have about the same: the bound of a
/// score depends on the norms, and a tile whose norms are far from a query's cannot hold anything
/// near it. Among equal norms the order is scrambled, as tables are often sorted by what matters.
template <class T>
class RowPanels {
public:
    /// Rows of which the filter reads panel after panel before it looks at a bound again.
    struct Tile {
        std::size_t begin_panel, end_panel;
        FilterRow bounds;  // of all its rows
    };

    /// Bytes that a row takes.
    static std::size_t bytes_of_row(std::size_t dimensions) {
        return dimensions * sizeof(T) + sizeof(T) + sizeof(std::uint32_t) + sizeof(FilterRow);
    }

    /// Packs the rows that `rows` names: positions of this class are in the order of norms, and
    /// entry() gives the index into `rows` back. Rows without neighbours under cosine are left out.
    /// O(elements) time. Error: cancelled.
    Status pack(const FilterSpace& space, FilterSpace::Side side, const Vectors& vectors,
                std::span<const std::uint32_t> rows, std::size_t panel_rows, Execution& execution);

    std::size_t size() const { return entries_.size(); }
    std::size_t panels() const { return (size() + panel_rows_ - 1) / panel_rows_; }
    const T* panel(std::size_t panel) const {
        return elements_.get() + panel * panel_rows_ * dimensions_;
    }
    /// By position; NaN behind the last row.
    const T* offsets() const { return offsets_.data(); }
    std::uint32_t entry(std::size_t position) const { return entries_[position]; }
    const FilterRow& bounds(std::size_t position) const { return bounds_[position]; }
    std::span<const Tile> tiles() const { return tiles_; }
    /// But for the last one, which may have fewer.
    std::size_t tile_rows() const { return tile_rows_; }
    std::size_t tile_of(std::size_t position) const { return position / tile_rows_; }

private:
    Status order(const FilterSpace& space, FilterSpace::Side side, const Vectors& vectors,
                 std::span<const std::uint32_t> rows, Execution& execution);
    void set_tiles();

    std::size_t dimensions_ = 0, panel_rows_ = 1, tile_rows_ = 1;
    std::unique_ptr<T[]> elements_;
    std::vector<T> offsets_;
    std::vector<std::uint32_t> entries_;
    std::vector<FilterRow> bounds_;
    std::vector<Tile> tiles_;
};

}  // namespace gputext
