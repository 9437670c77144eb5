#include "cpp/knn/detail/row_panels.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "cpp/base/radix_sort.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/knn/detail/distance_filter.hpp"

namespace gputext {
namespace {

/// A tile stays in a core's second cache while panels of queries pass by.
constexpr std::size_t kTileBytes = std::size_t{256} << 10;

/// An odd number and its inverse modulo 2^32: multiplying scrambles numbers, and back.
constexpr std::uint32_t kScramble = 0x9e3779b1;
constexpr std::uint32_t inverse_of(std::uint32_t odd) {
    std::uint32_t inverse = odd;
    for (int i = 0; i < 4; ++i) inverse *= 2 - odd * inverse;
    return inverse;
}
static_assert(kScramble * inverse_of(kScramble) == 1);

/// One thread's memory for a row on its way.
template <class T>
struct Scratch {
    std::vector<double> row;
    std::vector<T> converted;  // one row, or a panel of them

    Scratch(std::size_t padded, std::size_t rows) : row(padded), converted(padded * rows) {}
};

template <class T>
FilterRow convert(const FilterSpace& space, FilterSpace::Side side, const Vectors& vectors,
                  std::size_t row, std::vector<double>& scratch, T* out) {
    copy_elements(vectors, vectors.begin(row), vectors.dimensions, scratch.data());
    return space.convert(side, scratch.data(), out);
}

}  // namespace

/// Fills entries_.
template <class T>
Status RowPanels<T>::order(const FilterSpace& space, FilterSpace::Side side, const Vectors& vectors,
                           std::span<const std::uint32_t> rows, Execution& execution) {
    std::vector<std::uint64_t> keys(rows.size());
    std::vector<Scratch<T>> scratch(execution.threads(), Scratch<T>(space.padded(), 1));
    const std::size_t step = std::max<std::size_t>(1, (kLookEvery / 16) / vectors.dimensions);
    const std::size_t tasks = (rows.size() + step - 1) / step;
    execution.begin_phase("computing norms", tasks);
    constexpr std::uint64_t left_out = UINT64_MAX;
    Status status = execution.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
        auto& [row, converted] = scratch[worker];
        for (std::size_t i = task * step; i < std::min(rows.size(), (task + 1) * step); ++i) {
            const FilterRow bounds = convert(space, side, vectors, rows[i], row, converted.data());
            const auto norm = std::bit_cast<std::uint32_t>(static_cast<float>(bounds.norm));
            keys[i] = std::uint64_t{norm} << 32 | static_cast<std::uint32_t>(i) * kScramble;
            if (bounds.norm == 0 && space.zero_rows_left_out()) keys[i] = left_out;
        }
        return Status();
    });
    if (!status.ok()) return status;
    if (!radix_sort(keys, execution.stop())) return Status::cancelled();
    while (!keys.empty() && keys.back() == left_out) keys.pop_back();
    entries_.resize(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i)
        entries_[i] = static_cast<std::uint32_t>(keys[i]) * inverse_of(kScramble);
    return {};
}

template <class T>
Status RowPanels<T>::pack(const FilterSpace& space, FilterSpace::Side side, const Vectors& vectors,
                          std::span<const std::uint32_t> rows, const PanelShape& shape,
                          Execution& execution) {
    using Offset = ScoreOf<T>;
    const std::size_t dimensions = vectors.dimensions, panel_rows = shape.rows;
    shape_ = shape;
    panel_size_ = shape.size(dimensions);
    GPUTEXT_TRY(order(space, side, vectors, rows, execution));
    elements_.set_size(panels() * panel_size_);
    offsets_.set_size(panels() * panel_rows);
    bounds_.resize(size());

    const std::size_t padded = space.padded();
    std::vector<Scratch<T>> scratch(execution.threads(), Scratch<T>(padded, panel_rows));
    execution.begin_phase("packing vectors", panels());
    Status status = execution.parallel_for(panels(), [&](std::size_t panel, unsigned worker) {
        auto& [row, converted] = scratch[worker];
        const std::size_t begin = panel * panel_rows, end = std::min(size(), begin + panel_rows);
        for (std::size_t position = begin; position < end; ++position) {
            bounds_[position] = convert(space, side, vectors, rows[entries_[position]], row,
                                        converted.data() + (position - begin) * padded);
            offsets_.data()[position] = static_cast<Offset>(bounds_[position].offset);
        }
        std::fill(offsets_.data() + end, offsets_.data() + begin + panel_rows,
                  std::numeric_limits<Offset>::quiet_NaN());
        fill_panel(converted.data(), padded, end - begin, dimensions, shape,
                   elements_.data() + panel * panel_size_);
        return Status();
    });
    if (status.ok())
        set_tiles(std::max<std::size_t>(1, kTileBytes / (panel_size_ * sizeof(PanelNumber<T>))));
    return status;
}

template <class T>
void RowPanels<T>::set_tiles(std::size_t tile_panels) {
    const std::size_t panel_rows = shape_.rows;
    tile_rows_ = tile_panels * panel_rows;
    tiles_.clear();
    for (std::size_t begin = 0; begin < panels(); begin += tile_panels) {
        Tile tile{begin, std::min(panels(), begin + tile_panels), bounds_[begin * panel_rows]};
        const std::size_t end = std::min(size(), tile.end_panel * panel_rows);
        for (std::size_t position = begin * panel_rows; position < end; ++position) {
            const FilterRow& row = bounds_[position];
            tile.bounds.norm = std::max(tile.bounds.norm, row.norm);
            tile.bounds.least_norm = std::min(tile.bounds.least_norm, row.least_norm);
            tile.bounds.residual = std::max(tile.bounds.residual, row.residual);
            tile.bounds.low = std::max(tile.bounds.low, row.low);
        }
        tiles_.push_back(tile);
    }
}

template class RowPanels<Bfloat16>;
template class RowPanels<Bfloat16Pair>;
template class RowPanels<float>;
template class RowPanels<double>;

}  // namespace gputext
