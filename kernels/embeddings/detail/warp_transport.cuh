// kernels/embeddings/detail/warp_transport.cuh - solver of
// cpp/embeddings/detail/optimal_transport.hpp by one warp, for at most 32 * C rows and columns
//
// Lane l has rows and columns l, l + 32 .. in its registers, and the warp its costs and what is
// carried in shared memory. The same potentials and searches as the CPU's; in a tie a column that
// lacks something goes first. The total follows from the potentials: sum of supply * u and
// demand * v.

#pragma once

#include <cstdint>

#include "kernels/base/warp.cuh"

namespace gputext::gpu {

template <int C>
class WarpTransport {
public:
    static constexpr unsigned most = kWarp * C;         // rows, or columns
    static constexpr unsigned words = 2 * most * most;  // of shared memory

    /// `shared` has words; the first most * most of them are for the costs, c[i][j] at
    /// [i * most + j].
    __device__ WarpTransport(std::uint32_t* shared, unsigned rows, unsigned columns, unsigned lane)
        : costs_(shared),
          carried_(shared + most * most),
          rows_(rows),
          columns_(columns),
          lane_(lane) {}

    /// The least total. Costs are there; lane l gives what it has of supplies and demands, 0 beyond
    /// the last ones. All lanes return it.
    __device__ std::uint64_t solve(const std::uint32_t (&supplies)[C],
                                   const std::uint32_t (&demands)[C]) {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            supply_[c] = supplies[c];
            demand_[c] = demands[c];
            v_[c] = 0;
            u_[c] = 0;
        }
        for (unsigned j = 0; j < columns_; ++j)
            for (unsigned i = lane_; i < rows_; i += kWarp) carried_[j * most + i] = 0;
        __syncwarp();
        set_column_potentials();
        for (unsigned row = 0; row < rows_; ++row) begin_row(row);
        for (unsigned row = 0; row < rows_; ++row) {
            std::uint32_t left = of_lane(supply_, row);
            while (left > 0) {
                search(row);
                change_potentials();
                left -= augment(row, left);
            }
        }
        std::int64_t total = 0;
#pragma unroll
        for (int c = 0; c < C; ++c)
            total += static_cast<std::int64_t>(supplies[c]) * u_[c] +
                     static_cast<std::int64_t>(demands[c]) * v_[c];
        return static_cast<std::uint64_t>(warp_sum(total));
    }

    /// The larger one of the sums of mass times the least cost, of rows and of columns.
    __device__ std::uint64_t relaxed(const std::uint32_t (&supplies)[C],
                                     const std::uint32_t (&demands)[C]) {
#pragma unroll
        for (int c = 0; c < C; ++c) v_[c] = 0;
        set_column_potentials();
        std::uint64_t forth = 0, back = 0;
#pragma unroll
        for (int c = 0; c < C; ++c) back += static_cast<std::uint64_t>(demands[c]) * v_[c];
        for (unsigned row = 0; row < rows_; ++row) {
            std::uint32_t least = UINT32_MAX;
#pragma unroll
            for (int c = 0; c < C; ++c)
                if (column(c) < columns_) least = min(least, costs_[row * most + column(c)]);
            least = warp_min(least);
            forth += static_cast<std::uint64_t>(of_lane(supplies, row)) * least;
        }
        return max(forth, warp_sum(back));
    }

private:
    __device__ unsigned column(int c) const {
        return lane_ + kWarp * static_cast<unsigned>(c);
    }

    /// The element of an array over rows or columns, from the lane that has it.
    template <class T>
    __device__ T of_lane(const T (&values)[C], unsigned index) const {
        T value = values[0];
#pragma unroll
        for (int c = 1; c < C; ++c)
            if (index / kWarp == static_cast<unsigned>(c)) value = values[c];
        return __shfl_sync(kAllLanes, value, static_cast<int>(index % kWarp));
    }

    __device__ bool has(unsigned index, int c) const {
        return index == column(c);
    }

    __device__ void set_column_potentials() {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if (column(c) >= columns_) continue;
            std::uint32_t least = UINT32_MAX;
            for (unsigned row = 0; row < rows_; ++row)
                least = min(least, costs_[row * most + column(c)]);
            v_[c] = static_cast<std::int32_t>(least);
        }
    }

    /// The row's potential, and what can be carried where the cost is just that of the potentials.
    __device__ void begin_row(unsigned row) {
        std::int32_t rest[C];
        std::uint32_t least = UINT32_MAX;
#pragma unroll
        for (int c = 0; c < C; ++c) {
            rest[c] = INT32_MAX;
            if (column(c) >= columns_) continue;
            rest[c] = static_cast<std::int32_t>(costs_[row * most + column(c)]) - v_[c];
            least = min(least, static_cast<std::uint32_t>(rest[c]));
        }
        const auto u = static_cast<std::int32_t>(warp_min(least));
        std::uint32_t left = of_lane(supply_, row);
#pragma unroll
        for (int c = 0; c < C; ++c) {
            unsigned tight = __ballot_sync(kAllLanes, rest[c] == u && demand_[c] > 0);
            while (tight != 0 && left > 0) {
                const int at = __ffs(static_cast<int>(tight)) - 1;
                tight &= tight - 1;
                const std::uint32_t mass = min(left, __shfl_sync(kAllLanes, demand_[c], at));
                left -= mass;
                if (lane_ == static_cast<unsigned>(at)) {
                    demand_[c] -= mass;
                    carried_[column(c) * most + row] = mass;
                }
            }
            if (has(row, c)) u_[c] = u;
        }
#pragma unroll
        for (int c = 0; c < C; ++c)
            if (has(row, c)) supply_[c] = left;
        __syncwarp();
    }

    __device__ void relax(unsigned row, std::uint32_t distance) {
        const std::uint32_t offset = distance - static_cast<std::uint32_t>(of_lane(u_, row));
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if (closed_[c]) continue;
            const std::uint32_t there =
                offset + costs_[row * most + column(c)] - static_cast<std::uint32_t>(v_[c]);
            if (there < distance_[c]) {
                distance_[c] = there;
                from_[c] = row;
            }
        }
    }

    /// `end_`: a nearest column that lacks something, `length_` its distance.
    __device__ void search(unsigned row) {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            closed_[c] = column(c) >= columns_;
            scanned_[c] = false;
            distance_[c] = UINT32_MAX;
            reached_[c] = has(row, c) || column(c) >= rows_;
            row_distance_[c] = 0;
        }
        relax(row, 0);
        for (;;) {
            std::uint32_t nearest = UINT32_MAX;
#pragma unroll
            for (int c = 0; c < C; ++c)
                if (!closed_[c]) nearest = min(nearest, distance_[c]);
            length_ = warp_min(nearest);
            // This lane's state: 0 for none, 1 for a column at that distance, 2 if it lacks
            // something.
            int best = 0, mine = 0;
#pragma unroll
            for (int c = 0; c < C; ++c) {
                if (closed_[c] || distance_[c] != length_) continue;
                const int rank = demand_[c] > 0 ? 2 : 1;
                if (rank > best) best = rank, mine = c;
            }
            const unsigned lacking = __ballot_sync(kAllLanes, best == 2);
            const unsigned any = lacking != 0 ? lacking : __ballot_sync(kAllLanes, best == 1);
            const int at = __ffs(static_cast<int>(any)) - 1;
            const unsigned of_lane_at =
                static_cast<unsigned>(C == 1 ? 0 : __shfl_sync(kAllLanes, mine, at));
            end_ = of_lane_at * kWarp + static_cast<unsigned>(at);
            if (lacking != 0) return;
            scan(end_);
        }
    }

    /// Closes the column, and goes on from all rows that carry something to it.
    __device__ void scan(unsigned from) {
        unsigned rows[C];
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if (has(from, c)) closed_[c] = scanned_[c] = true;
            const bool carries = !reached_[c] && carried_[from * most + column(c)] > 0;
            if (carries) {
                reached_[c] = true;
                row_distance_[c] = length_;
                row_from_[c] = from;
            }
            rows[c] = __ballot_sync(kAllLanes, carries);
        }
#pragma unroll
        for (int c = 0; c < C; ++c)
            for (unsigned left = rows[c]; left != 0; left &= left - 1)
                relax(static_cast<unsigned>(__ffs(static_cast<int>(left)) - 1) +
                          kWarp * static_cast<unsigned>(c),
                      length_);
    }

    __device__ void change_potentials() {
#pragma unroll
        for (int c = 0; c < C; ++c) {
            if (scanned_[c]) v_[c] -= static_cast<std::int32_t>(length_ - distance_[c]);
            // The searching row's distance is 0.
            if (reached_[c] && column(c) < rows_)
                u_[c] += static_cast<std::int32_t>(length_ - row_distance_[c]);
        }
    }

    /// Carries as much as the path allows, which it returns.
    __device__ std::uint32_t augment(unsigned row, std::uint32_t left) {
        std::uint32_t mass = min(left, of_lane(demand_, end_));
        for (unsigned at = of_lane(from_, end_); at != row;) {
            const unsigned back = of_lane(row_from_, at);
            mass = min(mass, carried_[back * most + at]);
            at = of_lane(from_, back);
        }
        __syncwarp();
        unsigned to = end_;
        for (;;) {
            const unsigned at = of_lane(from_, to);
            if (lane_ == 0) carried_[to * most + at] += mass;
            if (at == row) break;
            to = of_lane(row_from_, at);
            if (lane_ == 0) carried_[to * most + at] -= mass;
        }
#pragma unroll
        for (int c = 0; c < C; ++c)
            if (has(end_, c)) demand_[c] -= mass;
        __syncwarp();
        return mass;
    }

    std::uint32_t* costs_;
    std::uint32_t* carried_;  // column by column
    unsigned rows_, columns_, lane_;
    std::uint32_t supply_[C], demand_[C];
    std::int32_t u_[C], v_[C];
    // State of one search:
    std::uint32_t distance_[C], row_distance_[C];
    unsigned from_[C], row_from_[C];
    bool closed_[C], scanned_[C], reached_[C];
    std::uint32_t length_ = 0;
    unsigned end_ = 0;
};

}  // namespace gputext::gpu
