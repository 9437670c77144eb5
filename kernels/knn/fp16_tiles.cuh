// kernels/knn/fp16_tiles.cuh - products of halves by blocks of 256 threads, from tiles in shared
// memory
//
// A block multiplies 128 rows by some columns, 64 dimensions at a time. Its warps are two below
// each other, and four beside each other. Compute capability 8.0 or higher.

#pragma once

#include "kernels/knn/detail/fp16_product.cuh"

namespace gputext::gpu::half_tiles {

inline constexpr unsigned kThreads = 256;
inline constexpr unsigned kRows = 128;  // queries of a block
inline constexpr unsigned kDepth = 64;  // dimensions in shared memory at a time

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

inline constexpr unsigned kVectors = kDepth / 8;
inline constexpr unsigned kTiles = 4;  // of 16 queries, of a warp
inline constexpr unsigned kWarpRows = 16 * kTiles;

__device__ inline unsigned place_of(unsigned row, unsigned vector) {
    return row * kDepth + (vector ^ row % 8) * 8;
}

/// What a block multiplies.
struct BlockTask {
    std::uint32_t first_query, end_queries;
    std::uint32_t begin, end;  // numbers of items, or places of a part's
    std::uint32_t first_item;  // number of the first of all
    unsigned group;            // of queries
};

/// Writes the numbers of the block's queries, UINT32_MAX behind the last one. By the block.
__device__ inline BlockTask take_task(const Fp16FilterJob& job, std::uint32_t query_tiles,
                                      std::uint32_t items_per_block, std::uint32_t* queries) {
    const Fp16FilterParts& parts = job.parts;
    BlockTask task;
    if (parts.parts == nullptr) {
        task.first_query = blockIdx.x % query_tiles * kRows;
        task.end_queries = job.rows;
        task.begin = job.begin + blockIdx.x / query_tiles * items_per_block;
        task.end = min(job.end, task.begin + items_per_block);
        task.first_item = job.first_item;
        task.group = task.first_query / kGroupQueries;
    } else {
        for (std::uint32_t i = threadIdx.x; i < parts.count; i += kThreads)
            if (parts.parts[i].first_block <= blockIdx.x &&
                (i + 1 == parts.count || blockIdx.x < parts.parts[i + 1].first_block))
                queries[0] = i;
        __syncthreads();
        const Fp16FilterPart part = parts.parts[queries[0]];
        __syncthreads();
        const std::uint32_t block = blockIdx.x - part.first_block;
        const std::uint32_t tiles = (part.end_queries - part.begin_queries + kRows - 1) / kRows;
        task.first_query = part.begin_queries + block % tiles * kRows;
        task.end_queries = part.end_queries;
        task.begin = part.begin + block / tiles * Fp16FilterPart::block_items;
        task.end = min(part.end, task.begin + Fp16FilterPart::block_items);
        task.first_item = 0;
        task.group = 0;
    }
    if (threadIdx.x < kRows) {
        const std::uint32_t at = task.first_query + threadIdx.x;
        queries[threadIdx.x] = at >= task.end_queries   ? UINT32_MAX
                               : parts.parts != nullptr ? parts.queries[at]
                                                        : at;
    }
    __syncthreads();
    return task;
}

/// Copies dimensions [depth, depth + 64) of rows with these numbers, or zeros for UINT32_MAX.
__device__ inline void fetch_queries(const __half* from, std::uint32_t padded,
                                     const std::uint32_t* numbers, std::uint32_t depth,
                                     __half* to) {
#pragma unroll
    for (unsigned v = 0; v < kRows * kVectors / kThreads; ++v) {
        const unsigned row = (v * kThreads + threadIdx.x) / kVectors;
        const unsigned vector = threadIdx.x % kVectors;
        const std::uint32_t number = numbers[row];
        const bool valid = number != UINT32_MAX;
        const std::size_t at = valid ? std::size_t{number} * padded : 0;
        copy_vector(to + place_of(row, vector), from + at + depth + 8 * vector, valid);
    }
}

/// Copies dimensions [depth, depth + 64) of `Rows` rows from `first` on, or zeros from `end` on.
template <unsigned Rows>
__device__ void fetch_rows(const __half* from, std::uint32_t padded, std::uint32_t first,
                           std::uint32_t end, std::uint32_t depth, __half* to) {
#pragma unroll
    for (unsigned v = 0; v < Rows * kVectors / kThreads; ++v) {
        const unsigned row = (v * kThreads + threadIdx.x) / kVectors;
        const unsigned vector = threadIdx.x % kVectors;
        const bool valid = first + row < end;
        const std::size_t at = valid ? std::size_t{first + row} * padded : 0;
        copy_vector(to + place_of(row, vector), from + at + depth + 8 * vector, valid);
    }
}

/// The fragments of one step of sixteen dimensions, of a warp.
template <unsigned Eights>
struct Fragments {
    std::uint32_t queries[kTiles][4];
    std::uint32_t items[Eights][2];

    __device__ void load(const __half* query_stage, const __half* item_stage, unsigned warp_row,
                         unsigned warp_column, unsigned step) {
        const unsigned lane = threadIdx.x % 32;
#pragma unroll
        for (unsigned t = 0; t < kTiles; ++t) {
            const unsigned row = warp_row + 16 * t + lane % 16;
            load_matrices(queries[t],
                          shared_address(query_stage + place_of(row, 2 * step + lane / 16)));
        }
#pragma unroll
        for (unsigned n = 0; n < Eights; n += 2) {
            const unsigned column = warp_column + 8 * n + lane % 8 + lane / 16 * 8;
            std::uint32_t four[4];
            load_matrices(four,
                          shared_address(item_stage + place_of(column, 2 * step + lane / 8 % 2)));
            items[n][0] = four[0];
            items[n][1] = four[1];
            items[n + 1][0] = four[2];
            items[n + 1][1] = four[3];
        }
    }
};

/// sums += queries * items for the dimensions that are in shared memory, by a warp: of its tiles of
/// 16 rows beside each eight of its columns.
template <unsigned Eights>
__device__ __forceinline__ void multiply_stage(const __half* queries, const __half* items,
                                               unsigned warp_row, unsigned warp_column,
                                               float (&sums)[Eights][kTiles][4]) {
    Fragments<Eights> fragments[2];
    fragments[0].load(queries, items, warp_row, warp_column, 0);
#pragma unroll
    for (unsigned k = 0; k < kDepth / 16; ++k) {
        if (k + 1 < kDepth / 16)
            fragments[(k + 1) % 2].load(queries, items, warp_row, warp_column, k + 1);
        const Fragments<Eights>& now = fragments[k % 2];
#pragma unroll
        for (unsigned t = 0; t < kTiles; ++t)
#pragma unroll
            for (unsigned n = 0; n < Eights; ++n)
                multiply_halves(sums[n][t], now.queries[t], now.items[n][0], now.items[n][1]);
    }
}

#endif

}  // namespace gputext::gpu::half_tiles
