// kernels/embeddings/detail/lane_rows.cuh - rows of numbers in the registers of a warp, an equal
// share for each lane
//
// Lane l has the elements l, l + 32, ... of a row; see
// kernels/embeddings/detail/training_steps.hpp.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gputext::gpu {

/// Elements of a lane that one load takes.
__host__ __device__ constexpr unsigned lane_quad(unsigned elements) {
    return elements <= 2 ? elements : 4;
}
/// Elements of a lane that are in memory, of which those beyond the row are 0.
__host__ __device__ constexpr unsigned stored_elements(unsigned elements) {
    return (elements + lane_quad(elements) - 1) / lane_quad(elements) * lane_quad(elements);
}

/// Numbers of a row of sums, which are in the order of the elements.
__host__ __device__ constexpr std::uint32_t sum_size(std::uint32_t dimensions) {
    return (dimensions + 31) / 32 * 32;
}

template <unsigned Quad>
struct Loaded;
template <>
struct Loaded<1> {
    using Type = float;
};
template <>
struct Loaded<2> {
    using Type = float2;
};
template <>
struct Loaded<4> {
    using Type = float4;
};

/// A lane's share of `Elements` elements, of the row that begins at `row`.
template <unsigned Elements>
__device__ void load_row(const float* row, unsigned lane, float (&to)[Elements]) {
    constexpr unsigned kQuad = lane_quad(Elements);
    using Type = typename Loaded<kQuad>::Type;
#pragma unroll
    for (unsigned first = 0; first < Elements; first += kQuad) {
        const Type quad = reinterpret_cast<const Type*>(row + first * 32)[lane];
        const float* const parts = reinterpret_cast<const float*>(&quad);
#pragma unroll
        for (unsigned k = 0; k < kQuad; ++k)
            if (first + k < Elements) to[first + k] = parts[k];
    }
}

template <unsigned Elements>
__device__ void store_row(float* row, unsigned lane, const float (&from)[Elements]) {
    constexpr unsigned kQuad = lane_quad(Elements);
    using Type = typename Loaded<kQuad>::Type;
#pragma unroll
    for (unsigned first = 0; first < Elements; first += kQuad) {
        Type quad{};
        float* const parts = reinterpret_cast<float*>(&quad);
#pragma unroll
        for (unsigned k = 0; k < kQuad; ++k)
            if (first + k < Elements) parts[k] = from[first + k];
        reinterpret_cast<Type*>(row + first * 32)[lane] = quad;
    }
}

/// Adds up each of Size numbers over all lanes, by the tree of lane_dot(). Size is a power of two,
/// at most 32; lane l gets the total of number l / (32 / Size). In each stage half of the numbers
/// go to half of the lanes, so that a total costs about one exchange.
template <unsigned Size, unsigned Mask = 16>
__device__ void add_across(float* numbers, unsigned lane) {
    if constexpr (Size > 1) {
        const bool upper = lane & Mask;
#pragma unroll
        for (unsigned k = 0; k < Size / 2; ++k) {
            const float sent = upper ? numbers[k] : numbers[k + Size / 2];
            const float kept = upper ? numbers[k + Size / 2] : numbers[k];
            numbers[k] = __fadd_rn(kept, __shfl_xor_sync(~0u, sent, Mask));
        }
    } else {
        numbers[0] = __fadd_rn(numbers[0], __shfl_xor_sync(~0u, numbers[0], Mask));
    }
    if constexpr (Mask > 1) add_across<(Size > 1 ? Size / 2 : 1), Mask / 2>(numbers, lane);
}

}  // namespace gputext::gpu
