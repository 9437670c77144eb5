#include <climits>

#include "kernels/base/binary_search.cuh"
#include "kernels/base/bit_product.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/documents/detail/letter_product.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kStageBytes = 8192;  // of columns in shared memory, twice
constexpr int kNever = INT_MIN / 2;

/// Columns that are in shared memory at once.
template <unsigned Steps>
constexpr unsigned kStageColumns = kStageBytes / (32 * Steps);

/// The tile that has the task: the last one that begins at or before it.
__device__ FilterTile tile_of_task(const FilterJob& job, std::uint32_t task) {
    const auto begun = [&](std::uint32_t tile) { return job.tiles[tile].first_task <= task; };
    return job.tiles[partition_point(1u, job.tile_count, begun) - 1];
}

/// Minus the least number of counted letters that a column must share with any row of the tile:
/// what a product starts from, so that its sign tells. Exact where the rows are of one length.
__device__ int start_of_column(const FilterJob& job, const FilterTile& tile, std::uint32_t column) {
    if (column >= tile.columns_end) return kNever;
    const std::uint32_t packed = job.parts.lengths[column];
    const int length = static_cast<int>(packed & 0xffff);
    const int excess = static_cast<int>(packed >> 16);
    const int edits = job.most_edits[tile.longest_row + length];
    return edits + excess - max(length, static_cast<int>(tile.shortest_row));
}

/// Brings columns to shared memory by way of registers, so that the next ones are under way while
/// the last ones are being multiplied.
template <unsigned Steps>
struct Stage {
    static constexpr unsigned kColumns = kStageColumns<Steps>;
    static constexpr unsigned kVectors = kStageBytes / 16 / kThreads;

    struct Memory {
        uint4 counts[Steps][kColumns][2];
        int starts[kColumns];
    };

    uint4 vectors[kVectors];
    int start;

    __device__ void fetch(const FilterJob& job, const FilterTile& tile, std::uint32_t first) {
#pragma unroll
        for (unsigned v = 0; v < kVectors; ++v) {
            const unsigned at = v * kThreads + threadIdx.x;
            const unsigned step = at / (2 * kColumns);
            const std::uint32_t column = first + at / 2 % kColumns;
            vectors[v] = {0, 0, 0, 0};
            if (column < tile.columns_end)
                vectors[v] =
                    job.parts.counts[2 * (std::size_t{step} * job.parts.size + column) + at % 2];
        }
        if (threadIdx.x < kColumns) start = start_of_column(job, tile, first + threadIdx.x);
    }

    __device__ void store(Memory& memory) const {
#pragma unroll
        for (unsigned v = 0; v < kVectors; ++v)
            (&memory.counts[0][0][0])[v * kThreads + threadIdx.x] = vectors[v];
        if (threadIdx.x < kColumns) memory.starts[threadIdx.x] = start;
    }
};

/// Called by whole warps; those with `is` add a candidate. `full` becomes true for one that finds no
/// room: then the launch is done again, and what it would add from there on need not be counted,
/// which takes many times as long as to filter pairs where most of them pass.
__device__ void append(const FilterJob& job, bool is, std::uint32_t row, std::uint32_t column,
                       bool& full) {
    const unsigned lanes = __ballot_sync(~0u, is);
    if (lanes == 0) return;
    const unsigned lane = threadIdx.x % 32;
    const unsigned long long at = take_places(job.found, lanes, lane);
    if (!is) return;
    if (at < job.capacity)
        job.candidates[at] = {row, column};
    else
        full = true;
}

/// Runs body(memory, first column) for every stage of the block's task.
template <unsigned Steps, class Body>
__device__ void for_each_stage(const FilterJob& job, const FilterTile& tile, std::uint32_t task,
                               Body&& body) {
    using Stages = Stage<Steps>;
    __shared__ typename Stages::Memory memory[2];
    const std::uint32_t begin =
        tile.columns_begin + (task - tile.first_task) * job.columns_per_task;
    const std::uint32_t end = min(tile.columns_end, begin + job.columns_per_task);
    Stages stage;
    stage.fetch(job, tile, begin);
    stage.store(memory[0]);
    __syncthreads();
    unsigned now = 0;
    for (std::uint32_t first = begin; first < end; first += Stages::kColumns, now ^= 1) {
        const bool more = first + Stages::kColumns < end;
        if (more) stage.fetch(job, tile, first + Stages::kColumns);
        body(memory[now], first);
        if (more) stage.store(memory[now ^ 1]);
        __syncthreads();
    }
}

/// Each warp multiplies 16 * Tiles rows, held in registers, with all columns of the task. A lane's
/// two words of K are neighbors.
template <unsigned Steps, unsigned Tiles>
__global__ __launch_bounds__(kThreads) void filter_by_product(const FilterJob job,
                                                              std::uint32_t first_task) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    const std::uint32_t task = first_task + blockIdx.x;
    const FilterTile tile = tile_of_task(job, task);
    const unsigned lane = threadIdx.x % 32;
    const std::uint32_t first_row = tile.rows_begin + threadIdx.x / 32 * 16 * Tiles + lane / 4;

    std::uint32_t rows[Steps][Tiles][4];
#pragma unroll
    for (unsigned step = 0; step < Steps; ++step) {
#pragma unroll
        for (unsigned half = 0; half < 2 * Tiles; ++half) {
            const std::uint32_t row = first_row + 8 * half;
            uint2 words = {0, 0};
            if (row < tile.rows_end)
                words = reinterpret_cast<const uint2*>(
                    job.parts.counts)[4 * (std::size_t{step} * job.parts.size + row) + lane % 4];
            rows[step][half / 2][half % 2] = words.x;
            rows[step][half / 2][2 + half % 2] = words.y;
        }
    }

    bool full = false;
    for_each_stage<Steps>(job, tile, task, [&](const auto& memory, std::uint32_t first_column) {
        constexpr unsigned kColumns = kStageColumns<Steps>;
#pragma unroll 2
        for (unsigned eight = 0; eight < kColumns; eight += 8) {
            const int2 starts = reinterpret_cast<const int2*>(memory.starts)[eight / 2 + lane % 4];
            const int start[4] = {starts.x, starts.y, starts.x, starts.y};
            int sums[Tiles][4];
#pragma unroll
            for (unsigned step = 0; step < Steps; ++step) {
                const uint2 words = reinterpret_cast<const uint2*>(
                    &memory.counts[step][eight + lane / 4][0])[lane % 4];
#pragma unroll
                for (unsigned t = 0; t < Tiles; ++t) {
                    if (step == 0)
                        multiply_bits(sums[t], rows[step][t], words, start);
                    else
                        multiply_bits(sums[t], rows[step][t], words, sums[t]);
                }
            }
            int all = -1;
#pragma unroll
            for (unsigned t = 0; t < Tiles; ++t)
                all &= sums[t][0] & sums[t][1] & sums[t][2] & sums[t][3];
            if (!__any_sync(~0u, all >= 0 && !full)) continue;

            unsigned passed = 0;  // the last sum in the lowest bit
#pragma unroll
            for (unsigned t = 0; t < Tiles; ++t)
#pragma unroll
                for (unsigned k = 0; k < 4; ++k) passed = passed << 1 | (sums[t][k] >= 0 ? 1u : 0u);
            while (__any_sync(~0u, passed != 0 && !full)) {
                const unsigned number = 4 * Tiles - __ffs(static_cast<int>(passed));
                const std::uint32_t row = first_row + number / 2 * 8;
                const std::uint32_t column = first_column + eight + lane % 4 * 2 + number % 2;
                append(job, passed != 0 && row < tile.rows_end && row < column, row, column,
                       full);
                passed &= passed - 1;
            }
        }
    });
#endif
}

/// Each thread counts for one row.
template <unsigned Steps>
__global__ __launch_bounds__(kThreads) void filter_by_counting(const FilterJob job,
                                                               std::uint32_t first_task) {
    const std::uint32_t task = first_task + blockIdx.x;
    const FilterTile tile = tile_of_task(job, task);
    const std::uint32_t row = tile.rows_begin + threadIdx.x;
    const bool is_row = row < tile.rows_end;
    uint4 words[Steps][2];
#pragma unroll
    for (unsigned i = 0; i < 2 * Steps; ++i)
        words[i / 2][i % 2] =
            is_row ? job.parts.counts[2 * (std::size_t{i / 2} * job.parts.size + row) + i % 2]
                   : uint4{0, 0, 0, 0};
    bool full = false;
    for_each_stage<Steps>(job, tile, task, [&](const auto& memory, std::uint32_t first_column) {
        for (unsigned column = 0; column < kStageColumns<Steps>; ++column) {
            int sum = memory.starts[column];
#pragma unroll
            for (unsigned i = 0; i < 2 * Steps; ++i) {
                const uint4 row_words = words[i / 2][i % 2];
                const uint4 other = memory.counts[i / 2][column][i % 2];
                sum += __popc(row_words.x & other.x) + __popc(row_words.y & other.y) +
                       __popc(row_words.z & other.z) + __popc(row_words.w & other.w);
            }
            append(job, sum >= 0 && is_row && !full && row < first_column + column, row,
                   first_column + column, full);
        }
    });
}

struct FilterVariant {
    void (*kernel)(FilterJob, std::uint32_t);
    unsigned rows;
};

template <unsigned Steps, unsigned Tiles>
FilterVariant variant(bool bit_product) {
    if (bit_product) return {filter_by_product<Steps, Tiles>, kWarps * 16 * Tiles};
    return {filter_by_counting<Steps>, kThreads};
}

FilterVariant variant_of_depth(std::size_t depth, bool bit_product) {
    if (depth == 4) return variant<1, 4>(bit_product);
    if (depth == 8) return variant<2, 4>(bit_product);
    if (depth == 16) return variant<4, 2>(bit_product);
    return variant<8, 1>(bit_product);
}

}  // namespace

unsigned filter_tile_rows(std::size_t depth, bool bit_product) {
    return variant_of_depth(depth, bit_product).rows;
}

Status run_filter(const FilterJob& job, std::size_t depth, bool bit_product, std::uint32_t begin,
                  std::uint32_t end, cudaStream_t stream) {
    variant_of_depth(depth, bit_product).kernel<<<end - begin, kThreads, 0, stream>>>(job, begin);
    return launched("filtering pairs by letters");
}

}  // namespace gputext::gpu
