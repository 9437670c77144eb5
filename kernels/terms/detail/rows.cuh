// kernels/terms/detail/rows.cuh - weights of rows of terms, for kernels

#pragma once

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

}  // namespace gputext::gpu
