// kernels/quad_similarities.cuh - the cosine of one query with many rows of float, read 16 bytes a
// lane
//
// Four lanes share a row: lane q takes elements 4 q to 4 q + 3 of every sixteen and so the partial
// sums of the same numbers (cpp/distance.hpp). Adding lanes q and q ^ 2, then q and q ^ 1, then the
// sums 0 and 2, 1 and 3 of a lane is the definition's tree. A row's square is 0 or above 2^-299, as
// float goes, and below 2^300: there is nothing to scale.

#pragma once

#include <cstdint>

#include "kernels/device_rows.hpp"
#include "kernels/exact_distance.cuh"

namespace gputext::gpu {

inline constexpr unsigned kQuad = 4;

/// The sums of products and of squares of a quad's row, four each.
struct QuadSums {
    double products[kQuad] = {};
    double squares[kQuad] = {};

    __device__ void add(const double* query, const float4& elements) {
        const double2 low = *reinterpret_cast<const double2*>(query);
        const double2 high = *reinterpret_cast<const double2*>(query + 2);
        const double a[kQuad] = {low.x, low.y, high.x, high.y};
        const float b[kQuad] = {elements.x, elements.y, elements.z, elements.w};
#pragma unroll
        for (unsigned i = 0; i < kQuad; ++i) {
            double sums[2] = {products[i], squares[i]};
            ProductAndSquareTerms::add(a[i], static_cast<double>(b[i]), sums);
            products[i] = sums[0];
            squares[i] = sums[1];
        }
    }

    __device__ static double total(double (&sums)[kQuad]) {
#pragma unroll
        for (unsigned distance = kQuad / 2; distance > 0; distance /= 2)
#pragma unroll
            for (double& sum : sums) sum = __dadd_rn(sum, __shfl_xor_sync(~0u, sum, distance));
        return __dadd_rn(__dadd_rn(sums[0], sums[2]), __dadd_rn(sums[1], sums[3]));
    }
};

/// Whether rows can be read so: their elements aligned to 16 bytes.
inline bool readable_by_quads(const DeviceRows& items) {
    return items.dimensions % kQuad == 0 &&
           reinterpret_cast<std::uintptr_t>(items.elements) % sizeof(float4) == 0;
}

/// Blocks of Threads, each of Threads / 4 rows.
template <unsigned Threads>
__global__ __launch_bounds__(Threads) void quad_similarities(DeviceQueries query,
                                                             const float* items, std::uint32_t rows,
                                                             double* similarities) {
    constexpr unsigned kAhead = 8;  // reads under way
    constexpr std::uint32_t kStep = 16;
    const std::uint32_t item = blockIdx.x * (Threads / kQuad) + threadIdx.x / kQuad;
    const unsigned lane = threadIdx.x % kQuad;
    const float* row = items + std::size_t{min(item, rows - 1)} * query.dimensions;
    QuadSums sums;
    std::uint32_t i = lane * kQuad;
    for (; i + (kAhead - 1) * kStep < query.dimensions; i += kAhead * kStep) {
        float4 elements[kAhead];
#pragma unroll
        for (unsigned ahead = 0; ahead < kAhead; ++ahead)
            elements[ahead] = __ldcs(reinterpret_cast<const float4*>(row + i + ahead * kStep));
#pragma unroll
        for (unsigned ahead = 0; ahead < kAhead; ++ahead)
            sums.add(query.elements + i + ahead * kStep, elements[ahead]);
    }
    for (; i < query.dimensions; i += kStep)
        sums.add(query.elements + i, __ldcs(reinterpret_cast<const float4*>(row + i)));
    const double products = QuadSums::total(sums.products);
    const double square = QuadSums::total(sums.squares);
    if (item < rows && lane == 0)
        similarities[item] = similarity_of(products, query.squares[0], square);
}

}  // namespace gputext::gpu
