// Products of queries and items over their dense terms, each rounded to sixteen bits.

#include "kernels/base/launch.hpp"
#include "kernels/knn/fp16_tiles.cuh"
#include "kernels/terms/detail/dense_terms.hpp"

namespace gputext::gpu {
namespace {

using namespace half_tiles;

constexpr unsigned kColumns = 128;  // items of a block
constexpr unsigned kStages = 3;
constexpr unsigned kPadded = kColumns + 8;  // so that rows begin in different banks

struct Tiles {
    __half queries[kStages][kRows * kDepth];
    __half items[kStages][kColumns * kDepth];
};
union Shared {
    Tiles tiles;
    std::int16_t scores[kRows][kPadded];
};

struct Product {
    const __half* queries;
    const __half* items;
    std::uint32_t padded;
    std::uint32_t first, end_query;  // rows of queries
    std::uint32_t item, end_item;    // rows of items
    std::int16_t* scores;
};

/// Blocks with the same blockIdx.y multiply the same items with different queries.
__global__ __launch_bounds__(kThreads, 2) void multiply(Product job) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    constexpr unsigned kWarpColumns = kColumns / 4;
    constexpr unsigned kEights = kWarpColumns / 8;
    extern __shared__ uint4 memory[];
    auto& shared = *reinterpret_cast<Shared*>(memory);
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    const unsigned warp_row = warp % 2 * kWarpRows;
    const unsigned warp_column = warp / 2 * kWarpColumns;
    const std::uint32_t first_query = job.first + blockIdx.x * kRows;
    const std::uint32_t first_item = job.item + blockIdx.y * kColumns;
    const unsigned steps = job.padded / kDepth;
    const auto fetch = [&](unsigned step) {
        if (step < steps) {
            fetch_rows<kRows>(job.queries, job.padded, first_query, job.end_query, step * kDepth,
                              shared.tiles.queries[step % kStages]);
            fetch_rows<kColumns>(job.items, job.padded, first_item, job.end_item, step * kDepth,
                                 shared.tiles.items[step % kStages]);
        }
        end_of_copies();
    };
#pragma unroll
    for (unsigned step = 0; step + 1 < kStages; ++step) fetch(step);
    float sums[kEights][kTiles][4] = {};
    for (unsigned step = 0; step < steps; ++step) {
        wait_for_copies<static_cast<int>(kStages) - 2>();
        __syncthreads();
        fetch(step + kStages - 1);
        multiply_stage(shared.tiles.queries[step % kStages], shared.tiles.items[step % kStages],
                       warp_row, warp_column, sums);
    }
    wait_for_copies<0>();
    __syncthreads();
    const auto rounded = [](float sum) {
        return static_cast<std::int16_t>(__float2int_rn(sum * static_cast<float>(kDenseScale)));
    };
#pragma unroll
    for (unsigned t = 0; t < kTiles; ++t)
#pragma unroll
        for (unsigned n = 0; n < kEights; ++n)
#pragma unroll
            for (unsigned half = 0; half < 2; ++half) {
                const unsigned row = warp_row + 16 * t + 8 * half + lane / 4;
                const unsigned column = warp_column + 8 * n + lane % 4 * 2;
                *reinterpret_cast<short2*>(&shared.scores[row][column]) = {
                    rounded(sums[n][t][2 * half]), rounded(sums[n][t][2 * half + 1])};
            }
    __syncthreads();
    constexpr unsigned kVectorsOfRow = kColumns / 8;
#pragma unroll
    for (unsigned v = 0; v < kRows * kVectorsOfRow / kThreads; ++v) {
        const unsigned at = v * kThreads + threadIdx.x;
        const unsigned row = at / kVectorsOfRow, vector = at % kVectorsOfRow;
        if (first_query + row >= job.end_query) continue;
        const std::size_t to = std::size_t{first_query - job.first + row} * kTermTile +
                               blockIdx.y * kColumns + 8 * vector;
        *reinterpret_cast<uint4*>(job.scores + to) =
            *reinterpret_cast<const uint4*>(&shared.scores[row][8 * vector]);
    }
#endif
}

}  // namespace

Status multiply_dense(const DenseTerms& terms, const DenseQueries& queries, std::uint32_t first,
                      std::uint32_t count, std::uint32_t item, std::uint32_t end,
                      std::int16_t* scores, cudaStream_t stream) {
    static_assert(kTermTile % kColumns == 0);
    constexpr int bytes = sizeof(Shared);
    GPUTEXT_TRY(allow_shared_bytes(multiply, bytes));
    const dim3 blocks(blocks_for(count, kRows), kTermTile / kColumns);
    multiply<<<blocks, kThreads, bytes, stream>>>(
        {queries.rows, terms.rows, terms.padded, first, first + count, item, end, scores});
    return launched("multiplying frequent terms");
}

}  // namespace gputext::gpu
