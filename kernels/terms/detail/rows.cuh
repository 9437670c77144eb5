// kernels/terms/detail/rows.cuh - weights of rows of terms, for kernels

#pragma once

#include <cstdint>

#include "kernels/base/warp.cuh"
#include "kernels/knn/exact_distance.cuh"
#include "kernels/terms/detail/rows.hpp"

namespace gputext::gpu {

struct RowSpan {
    std::uint64_t begin, end;
};

__device__ inline RowSpan span_of_row(const TermRows& rows, std::uint32_t row) {
    return {rows.begins[row] - rows.first, rows.begins[row + 1] - rows.first};
}

template <class T>
__device__ double weight_at(const TermRows& rows, std::uint64_t at, std::uint32_t column) {
    return __dmul_rn(as_double(static_cast<const T*>(rows.elements)[at]), rows.factors[column]);
}

/// Calls `of` with a value of the elements' type, on the host.
template <class Function>
auto with_term_type(ElementType type, Function&& of) {
    return type == ElementType::float32 ? of(float{}) : of(std::int32_t{});
}

// Sums of cpp/knn/distance.hpp over the elements of a sparse row.
//
// The sixteen partial sums of a warp lie in shared memory. Lanes bring up to 32 terms at a time, by
// ascending columns: those of one partial sum are added one after the other, in this order.

/// By whole warps, as all functions.
class OrderedSum {
public:
    static constexpr unsigned size = 16;

    /// `sums`: of this warp alone.
    __device__ explicit OrderedSum(double* sums) : sums_(sums) {
        __syncwarp();
        if (threadIdx.x % 32 < size) sums_[threadIdx.x % 32] = 0;
        __syncwarp();
    }

    /// Adds a lane's term, if it `has` one. Columns ascend from lane to lane.
    __device__ void add(bool has, std::uint32_t column, double term) {
        const unsigned lanes = __ballot_sync(~0u, has);
        if (lanes == 0) return;
        const unsigned partial = column % size;
        unsigned turn = 0;
        if (has) {
            const unsigned lane = threadIdx.x % 32;
            turn = lanes_before(__match_any_sync(lanes, partial), lane);
        }
        for (unsigned now = 0; __any_sync(~0u, has && turn >= now); ++now) {
            if (has && turn == now) sums_[partial] = __dadd_rn(sums_[partial], term);
            __syncwarp();
        }
    }

    __device__ double total() const { return warp_sum<size>(sums_[threadIdx.x % size]); }

private:
    double* sums_;
};

}  // namespace gputext::gpu
