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
#include "cpp/knn/detail/distance_filter.hpp"
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

    /// Bytes that a row takes in panels of a shape.
    static std::size_t bytes_of_row(const PanelShape& shape, std::size_t dimensions) {
        return shape.padded(dimensions) * sizeof(PanelNumber<T>) + sizeof(ScoreOf<T>) +
               sizeof(std::uint32_t) + sizeof(FilterRow);
    }

    /// Packs the rows that `rows` names: positions of this class are in the order of norms, and
    /// entry() gives the index into `rows` back. Rows without neighbours under cosine are left out.
    /// O(elements) time. Error: cancelled.
    Status pack(const FilterSpace& space, FilterSpace::Side side, const Vectors& vectors,
                std::span<const std::uint32_t> rows, const PanelShape& shape, Execution& execution);

    /// Makes tiles of so many panels, in place of as many as stay in a core's second cache.
    void set_tiles(std::size_t tile_panels);

    std::size_t size() const { return entries_.size(); }
    std::size_t panels() const { return (size() + shape_.rows - 1) / shape_.rows; }
    const PanelNumber<T>* panel(std::size_t panel) const {
        return elements_.data() + panel * panel_size_;
    }
    /// By position; NaN behind the last row.
    const ScoreOf<T>* offsets() const { return offsets_.data(); }
    std::uint32_t entry(std::size_t position) const { return entries_[position]; }
    const FilterRow& bounds(std::size_t position) const { return bounds_[position]; }
    std::span<const Tile> tiles() const { return tiles_; }
    /// But for the last one, which may have fewer.
    std::size_t tile_rows() const { return tile_rows_; }
    std::size_t tile_of(std::size_t position) const { return position / tile_rows_; }

private:
    Status order(const FilterSpace& space, FilterSpace::Side side, const Vectors& vectors,
                 std::span<const std::uint32_t> rows, Execution& execution);

    /// Numbers at a cache line's begin: vectors are loaded faster that lie in one line.
    template <class Number>
    class Lines {
    public:
        void set_size(std::size_t size) {
            lines_ = std::make_unique_for_overwrite<Line[]>((size + in_line - 1) / in_line);
        }
        Number* data() const { return reinterpret_cast<Number*>(lines_.get()); }

    private:
        static constexpr std::size_t in_line = 64 / sizeof(Number);
        struct alignas(64) Line {
            std::byte bytes[64];
        };
        std::unique_ptr<Line[]> lines_;
    };

    PanelShape shape_{1};
    std::size_t panel_size_ = 0, tile_rows_ = 1;
    Lines<PanelNumber<T>> elements_;
    Lines<ScoreOf<T>> offsets_;
    std::vector<std::uint32_t> entries_;
    std::vector<FilterRow> bounds_;
    std::vector<Tile> tiles_;
};

}  // namespace gputext
