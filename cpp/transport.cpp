#include "cpp/transport.hpp"

#include <algorithm>

#include "cpp/stoppable.hpp"

namespace gputext {
namespace {

/// Columns of a row are a multiple of these.
constexpr std::size_t kPadding = 16;

std::size_t padded(std::size_t columns) {
    return (columns + kPadding - 1) / kPadding * kPadding;
}

// ---- The loops over the columns, for each instruction set ----

[[gnu::always_inline]] inline void relax_here(const TransportSolver::Columns& columns,
                                              const std::uint32_t* __restrict costs,
                                              std::uint32_t offset, std::uint32_t row) {
    std::uint32_t* __restrict const distances = columns.distances;
    std::uint32_t* __restrict const from = columns.from;
    const std::uint32_t* __restrict const closed = columns.closed;
    const std::int32_t* __restrict const potentials = columns.potentials;
    for (std::size_t j = 0; j < columns.stride; ++j) {
        const std::uint32_t candidate =
            (offset + costs[j] - static_cast<std::uint32_t>(potentials[j])) | closed[j];
        from[j] = candidate < distances[j] ? row : from[j];
        distances[j] = std::min(distances[j], candidate);
    }
}

[[gnu::always_inline]] inline std::size_t nearest_here(const TransportSolver::Columns& columns) {
    const std::uint32_t* __restrict const distances = columns.distances;
    const std::uint32_t* __restrict const closed = columns.closed;
    std::uint32_t least = UINT32_MAX;
    for (std::size_t j = 0; j < columns.stride; ++j)
        least = std::min(least, distances[j] | closed[j]);
    std::size_t column = 0;
    while ((distances[column] | closed[column]) != least) ++column;
    return column;
}

[[gnu::optimize("O3")]] void relax_portable(const TransportSolver::Columns& columns,
                                            const std::uint32_t* costs, std::uint32_t offset,
                                            std::uint32_t row) {
    relax_here(columns, costs, offset, row);
}

[[gnu::optimize("O3")]] std::size_t nearest_portable(const TransportSolver::Columns& columns) {
    return nearest_here(columns);
}

#ifdef GPUTEXT_X86
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 void relax_avx2(const TransportSolver::Columns& columns,
                                                            const std::uint32_t* costs,
                                                            std::uint32_t offset,
                                                            std::uint32_t row) {
    relax_here(columns, costs, offset, row);
}

[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 std::size_t nearest_avx2(
    const TransportSolver::Columns& columns) {
    return nearest_here(columns);
}

[[gnu::optimize("O3"), gnu::target("prefer-vector-width=512")]] GPUTEXT_TARGET_AVX512 void
relax_avx512(const TransportSolver::Columns& columns, const std::uint32_t* costs,
             std::uint32_t offset, std::uint32_t row) {
    relax_here(columns, costs, offset, row);
}

[[gnu::optimize("O3"), gnu::target("prefer-vector-width=512")]] GPUTEXT_TARGET_AVX512 std::size_t
nearest_avx512(const TransportSolver::Columns& columns) {
    return nearest_here(columns);
}
#endif

TransportSolver::Relax relax_by(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return relax_avx512;
    if (simd == Simd::avx2) return relax_avx2;
#endif
    (void)simd;
    return relax_portable;
}

TransportSolver::Nearest nearest_by(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return nearest_avx512;
    if (simd == Simd::avx2) return nearest_avx2;
#endif
    (void)simd;
    return nearest_portable;
}

}  // namespace

TransportSolver::TransportSolver(Simd simd) : relax_(relax_by(simd)), nearest_(nearest_by(simd)) {}

std::uint64_t TransportSolver::bytes(std::size_t rows, std::size_t columns) {
    constexpr std::uint64_t bytes_of_row = 21, bytes_of_column = 28;
    return rows * (padded(columns) + columns) * sizeof(std::uint32_t) + rows * bytes_of_row +
           padded(columns) * bytes_of_column;
}

std::uint32_t* TransportSolver::begin(std::size_t rows, std::size_t columns) {
    rows_ = rows;
    columns_ = columns;
    stride_ = padded(columns);
    if (rows * stride_ > capacity_) {
        costs_.reset();
        costs_ = std::make_unique<std::uint32_t[]>(rows * stride_);
        capacity_ = rows * stride_;
    }
    return costs_.get();
}

Status TransportSolver::solve(std::span<const std::uint32_t> supplies,
                              std::span<const std::uint32_t> demands, Stop stop,
                              std::uint64_t& total) {
    stop_ = stop;
    supplies_.assign(supplies.begin(), supplies.end());
    demands_.assign(demands.begin(), demands.end());
    carried_.assign(rows_ * columns_, 0);
    row_distances_.resize(rows_);
    row_from_.resize(rows_);
    is_reached_.assign(rows_, 0);
    reached_.clear();
    scanned_.clear();
    pad();
    Status status = set_potentials();
    if (status.ok()) status = carry_along_tight_arcs();
    for (std::uint32_t row = 0; row < rows_ && status.ok(); ++row)
        while (supplies_[row] > 0) {
            std::size_t end = 0;
            status = search(row, end);
            if (!status.ok()) break;
            change_potentials(row, end);
            augment(row, end);
        }
    if (!status.ok()) return status;
    total = 0;
    for (std::size_t column = 0; column < columns_; ++column)
        for (std::size_t row = 0; row < rows_; ++row)
            total += std::uint64_t{carried(row, column)} * costs_of(row)[column];
    return {};
}

bool TransportSolver::stopped_after(std::size_t costs) {
    since_look_ += costs;
    if (since_look_ < kLookEvery) return false;
    since_look_ = 0;
    return stop_();
}

/// Columns of the padding are closed for good.
void TransportSolver::pad() {
    distances_.assign(stride_, 0);
    from_.assign(stride_, 0);
    v_.assign(stride_, 0);
    closed_.assign(stride_, 0);
    std::fill(closed_.begin() + static_cast<std::ptrdiff_t>(columns_), closed_.end(), UINT32_MAX);
    for (std::size_t row = 0; row < rows_; ++row)
        std::fill(costs_.get() + row * stride_ + columns_, costs_.get() + (row + 1) * stride_, 0u);
}

/// v: the least cost of each column; u: what that leaves of each row's least.
Status TransportSolver::set_potentials() {
    std::copy_n(costs_of(0), columns_, v_.begin());
    for (std::size_t row = 1; row < rows_; ++row) {
        if (stopped_after(columns_)) return Status::cancelled();
        for (std::size_t column = 0; column < columns_; ++column)
            v_[column] = std::min(v_[column], static_cast<std::int32_t>(costs_of(row)[column]));
    }
    u_.resize(rows_);
    for (std::size_t row = 0; row < rows_; ++row) {
        if (stopped_after(columns_)) return Status::cancelled();
        std::int32_t least = INT32_MAX;
        for (std::size_t column = 0; column < columns_; ++column)
            least = std::min(least, static_cast<std::int32_t>(costs_of(row)[column]) - v_[column]);
        u_[row] = least;
    }
    return {};
}

Status TransportSolver::carry_along_tight_arcs() {
    for (std::size_t row = 0; row < rows_; ++row) {
        if (stopped_after(columns_)) return Status::cancelled();
        for (std::size_t column = 0; column < columns_ && supplies_[row] > 0; ++column)
            if (static_cast<std::int32_t>(costs_of(row)[column]) == u_[row] + v_[column])
                carry(row, column, std::min(supplies_[row], demands_[column]));
    }
    return {};
}

void TransportSolver::carry(std::size_t row, std::size_t column, std::uint32_t mass) {
    carried(row, column) += mass;
    supplies_[row] -= mass;
    demands_[column] -= mass;
}

/// `end`: the nearest column that lacks something; `scanned_` are those that were nearer.
Status TransportSolver::search(std::uint32_t row, std::size_t& end) {
    for (const std::uint32_t column : scanned_) closed_[column] = 0;
    scanned_.clear();
    for (const std::uint32_t reached : reached_) is_reached_[reached] = 0;
    reached_.clear();
    std::fill(distances_.begin(), distances_.end(), UINT32_MAX);
    const Columns columns{distances_.data(), from_.data(), closed_.data(), v_.data(), stride_};
    relax_(columns, costs_of(row), -static_cast<std::uint32_t>(u_[row]), row);
    for (;;) {
        if (stopped_after(stride_)) return Status::cancelled();
        end = nearest_(columns);
        if (demands_[end] > 0) return {};
        closed_[end] = UINT32_MAX;
        const auto column = static_cast<std::uint32_t>(end);
        scanned_.push_back(column);
        // What this row carries may be taken back as well, but leads nowhere.
        is_reached_[row] = 1;
        Status status = reach_rows(column);
        is_reached_[row] = 0;
        if (!status.ok()) return status;
    }
}

/// Those that carry something to the column, from which it may be taken back.
Status TransportSolver::reach_rows(std::uint32_t column) {
    const Columns columns{distances_.data(), from_.data(), closed_.data(), v_.data(), stride_};
    const std::uint32_t* const carried_there = carried_.data() + column * rows_;
    const std::uint32_t distance = distances_[column];
    for (std::uint32_t row = 0; row < rows_; ++row) {
        if (carried_there[row] == 0 || is_reached_[row] != 0) continue;
        if (stopped_after(stride_)) return Status::cancelled();
        is_reached_[row] = 1;
        reached_.push_back(row);
        row_distances_[row] = distance;
        row_from_[row] = column;
        relax_(columns, costs_of(row), distance - static_cast<std::uint32_t>(u_[row]), row);
    }
    return {};
}

void TransportSolver::change_potentials(std::uint32_t row, std::size_t end) {
    const std::uint32_t length = distances_[end];
    for (const std::uint32_t column : scanned_)
        v_[column] -= static_cast<std::int32_t>(length - distances_[column]);
    for (const std::uint32_t reached : reached_)
        u_[reached] += static_cast<std::int32_t>(length - row_distances_[reached]);
    u_[row] += static_cast<std::int32_t>(length);
}

/// Carries as much as the path allows from the row to the column.
void TransportSolver::augment(std::uint32_t row, std::size_t end) {
    std::uint32_t mass = std::min(supplies_[row], demands_[end]);
    for (std::uint32_t at = from_[end]; at != row; at = from_[row_from_[at]])
        mass = std::min(mass, carried(at, row_from_[at]));
    supplies_[row] -= mass;
    demands_[end] -= mass;
    std::size_t column = end;
    for (;;) {
        const std::uint32_t at = from_[column];
        carried(at, column) += mass;
        if (at == row) return;
        column = row_from_[at];
        carried(at, column) -= mass;
    }
}

}  // namespace gputext
