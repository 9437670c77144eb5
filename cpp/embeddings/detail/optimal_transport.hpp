// cpp/embeddings/detail/optimal_transport.hpp - solver of the transport problem: least cost of
// carrying masses from rows to columns
//
// Rows have supplies, columns demands, both above 0 and of the same sum; carrying one unit from row
// i to column j costs c[i][j]. All are integers, so the least total is one integer whatever finds
// it. Source: successive shortest paths with potentials, as Edmonds and Karp, 1972, and
// Tomizawa, 1971, with the initial potentials and the dense search of Jonker and Volgenant, 1987.
//
// With potentials u of rows and v of columns, c[i][j] - u[i] - v[j] is never negative, and 0 where
// something is carried. As long as a column still lacks something, 0 <= u <= c's maximum C and
// -C <= v <= C, and no path within a search is longer than 3 C: below 2^32, as C is below 2^30.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

/// No cost may reach it.
inline constexpr std::uint32_t kTransportCostEnd = std::uint32_t{1} << 30;

/// Solves one problem after the other, keeping its memory.
class OptimalTransport {
public:
    explicit OptimalTransport(Simd simd);

    /// Begins a problem: what it returns is to be filled with the costs, c[i][j] at
    /// [i * stride() + j].
    std::uint32_t* begin(std::size_t rows, std::size_t columns);
    std::size_t stride() const { return stride_; }

    /// The sum of what is carried times its cost, of the problem that was begun. Supplies and
    /// demands add up to less than 2^32. O((rows + columns) * rows * columns) time, in practice
    /// about the square root of that factor. Error: cancelled.
    Status solve(std::span<const std::uint32_t> supplies, std::span<const std::uint32_t> demands,
                 Stop stop, std::uint64_t& total);

    /// Memory of a problem of that size, at most.
    static std::uint64_t bytes(std::size_t rows, std::size_t columns);

    /// What a search keeps of columns; arrays are padded to stride().
    struct Columns {
        std::uint32_t* distances;
        std::uint32_t* from;          // the row from which the distance is
        const std::uint32_t* closed;  // all bits set for those that are not to be looked at
        const std::int32_t* potentials;
        const std::uint32_t* demands;  // that are left
        std::size_t stride;
    };
    /// distances[j] = min(that, offset + costs[j] - potentials[j]).
    using Relax = void (*)(const Columns& columns, const std::uint32_t* costs, std::uint32_t offset,
                           std::uint32_t row);
    /// The first open column of the least distance, and of these one that lacks something if any
    /// do.
    using Nearest = std::size_t (*)(const Columns& columns);

private:
    /// Counts costs that were looked at; true when the computation should stop.
    bool stopped_after(std::size_t costs);
    Status set_potentials();
    void pad();
    Status carry_along_tight_arcs();
    void add_carried(std::size_t row, std::size_t column, std::uint32_t mass);
    void carry(std::size_t row, std::size_t column, std::uint32_t mass);
    Columns searched();
    Status search(std::uint32_t row, std::size_t& end);
    Status reach_rows(std::uint32_t column);
    void change_potentials(std::uint32_t row, std::size_t end);
    void augment(std::uint32_t row, std::size_t end);

    const std::uint32_t* costs_of(std::size_t row) const { return costs_.get() + row * stride_; }
    std::uint32_t carried(std::size_t row, std::size_t column) const {
        return carried_[column * rows_ + row];
    }

    Relax relax_;
    Nearest nearest_;
    Stop stop_;
    std::size_t since_look_ = 0;
    std::size_t rows_ = 0, columns_ = 0, stride_ = 0;
    std::size_t capacity_ = 0;  // of costs_
    std::unique_ptr<std::uint32_t[]> costs_;
    std::vector<std::uint32_t> carried_;   // column by column
    std::vector<std::uint64_t> carriers_;  // of each column, the set of rows that carry to it
    std::size_t row_words_ = 0;            // of a set of rows
    std::vector<std::uint32_t> supplies_, demands_;  // that are left; demands with the padding's
    std::vector<std::int32_t> u_, v_;
    // State of one search:
    std::vector<std::uint32_t> distances_, from_, closed_;
    std::vector<std::uint32_t> row_distances_, row_from_;  // of rows reached, by which column
    std::vector<std::uint32_t> reached_, scanned_;
    std::vector<std::uint64_t> is_reached_;  // a set of rows
};

}  // namespace gputext
