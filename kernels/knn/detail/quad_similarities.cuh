// kernels/knn/detail/quad_similarities.cuh - cosine similarity of one query and many rows of float,
// at memory speed
//
// A warp copies eight rows to shared memory, 512 bytes of each at a time and a few steps ahead, and
// so reads whole lines of memory. There four lanes share a row: lane q takes elements 4 q to 4 q +
// 3 of every sixteen and so the partial sums of the same numbers (cpp/knn/distance.hpp). Adding
// lanes q and q ^ 2, then q and q ^ 1, then the sums 0 and 2, 1 and 3 of a lane is the definition's
// tree. A row's square is 0 or above 2^-299, as float goes, and below 2^300: there is nothing to
// scale.

#pragma once

#include <cstdint>

#include "kernels/knn/detail/device_rows.hpp"
#include "kernels/knn/detail/fp16_product.cuh"
#include "kernels/knn/exact_distance.cuh"

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

/// A warp's eight rows, a part of each.
struct QuadStage {
    static constexpr unsigned rows = 32 / kQuad;
    static constexpr unsigned part = 128;         // elements
    static constexpr unsigned pitch = part + 16;  // two rows lie in different banks
    float elements[rows][pitch];
};

/// What a warp reads next: part after part of eight rows, then of the next eight that are its own.
struct QuadPlace {
    std::uint32_t eight;
    std::uint32_t begin = 0;  // of the part

    __device__ void advance(std::uint32_t dimensions, std::uint32_t stride) {
        begin += QuadStage::part;
        if (begin < dimensions) return;
        begin = 0;
        eight += stride;
    }
};

struct QuadShape {
    static constexpr unsigned warps = 8;
    static constexpr unsigned stages = 3;
    static constexpr unsigned threads = 32 * warps;
    static constexpr unsigned shared_bytes = warps * stages * sizeof(QuadStage);
};

/// Rows must be aligned to 16 bytes, and dimensions a multiple of four, not 0.
__global__ __launch_bounds__(QuadShape::threads) void quad_similarities(DeviceQueries query,
                                                                        const float* items,
                                                                        std::uint32_t rows,
                                                                        double* similarities) {
    extern __shared__ uint4 memory[];
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    auto* stages = reinterpret_cast<QuadStage*>(memory) + warp * QuadShape::stages;
    const std::uint32_t dimensions = query.dimensions;
    const std::uint32_t eights = (rows + QuadStage::rows - 1) / QuadStage::rows;
    const std::uint32_t stride = gridDim.x * QuadShape::warps;
    QuadPlace next{blockIdx.x * QuadShape::warps + warp};
    QuadPlace now = next;
    const auto fetch = [&](QuadStage& stage) {
        const std::uint32_t at = next.begin + 4 * lane;
        const std::uint32_t first = next.eight * QuadStage::rows;
        const bool valid = next.eight < eights && at < dimensions;
#pragma unroll
        for (unsigned r = 0; r < QuadStage::rows; ++r) {
            const std::size_t row = min(first + r, rows - 1);
            copy_vector(&stage.elements[r][4 * lane], items + (valid ? row * dimensions + at : 0),
                        valid);
        }
        end_of_copies();
        next.advance(dimensions, stride);
    };
#pragma unroll
    for (unsigned s = 0; s + 1 < QuadShape::stages; ++s) fetch(stages[s]);

    QuadSums sums;
    for (unsigned s = 0; now.eight < eights; s = (s + 1) % QuadShape::stages) {
        __syncwarp();  // the stage that is fetched next has been read by all
        fetch(stages[(s + QuadShape::stages - 1) % QuadShape::stages]);
        wait_for_copies<QuadShape::stages - 1>();
        __syncwarp();
        const float* row = stages[s].elements[lane / kQuad];
#pragma unroll
        for (unsigned i = 0; i < QuadStage::part; i += 16) {
            // Zeros lie behind the last element.
            const unsigned at = i + lane % kQuad * 4;
            sums.add(query.elements + min(now.begin + at, dimensions - 4),
                     *reinterpret_cast<const float4*>(row + at));
        }
        const std::uint32_t item = now.eight * QuadStage::rows + lane / kQuad;
        now.advance(dimensions, stride);
        if (now.begin != 0) continue;
        const double products = QuadSums::total(sums.products);
        const double square = QuadSums::total(sums.squares);
        if (item < rows && lane % kQuad == 0)
            similarities[item] = similarity_of(products, query.squares[0], square);
        sums = {};
    }
    wait_for_copies<0>();
}

}  // namespace gputext::gpu
