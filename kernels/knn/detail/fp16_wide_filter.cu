#include <algorithm>

#include "kernels/base/launch.hpp"
#include "kernels/knn/fp16_tiles.cuh"

namespace gputext::gpu {
namespace {

using namespace half_tiles;

constexpr unsigned kAddTiles = 2;  // whose sums are looked at together
constexpr std::uint32_t kItemsPerBlock = Fp16FilterPart::block_items;
static_assert(kRows == Fp16FilterPart::block_queries);

/// Rows of 128 bytes whose vectors are exchanged such that neither copies nor matrices meet in a
/// bank.
template <unsigned Columns, unsigned Stages, unsigned Found>
struct Shared {
    __half queries[Stages][kRows * kDepth];
    __half items[Stages][Columns * kDepth];
    float starts[2][Columns];
    std::uint32_t query_numbers[kRows];
    FoundMemory<Found, kAddTiles> found[kThreads / 32];
};

/// Blocks of neighboring numbers take different queries beside the same items, which the second
/// level cache then holds. Tiles of items follow each other without a pause: the first dimensions
/// of the next one are copied while the last of this one are multiplied.
template <unsigned Columns, unsigned Stages, unsigned Found, bool Sample>
__global__ __launch_bounds__(kThreads, 1) void filter_wide(const Fp16FilterJob job,
                                                           std::uint32_t padded,
                                                           std::uint32_t query_tiles) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
    constexpr unsigned kWarpColumns = Columns / 4;
    constexpr unsigned kEights = kWarpColumns / 8;
    extern __shared__ uint4 memory[];
    auto& shared = *reinterpret_cast<Shared<Columns, Stages, Found>*>(memory);
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    const unsigned warp_row = warp % 2 * kWarpRows;
    const unsigned warp_column = warp / 2 * kWarpColumns;
    const BlockTask task = take_task(job, query_tiles, kItemsPerBlock, shared.query_numbers);
    const std::uint32_t begin = task.begin, end = task.end;
    const float2 group = job.queries.groups[task.group];
    Finder<Found, kAddTiles> finder(shared.found[warp], job, shared.query_numbers, warp_row, begin,
                                    end);
    Largest<kTiles> largest;

    float gates[kTiles][2];
#pragma unroll
    for (unsigned half = 0; half < 2 * kTiles; ++half) {
        const std::uint32_t row = shared.query_numbers[warp_row + 8 * half + lane / 4];
        gates[half / 2][half % 2] = row == UINT32_MAX ? INFINITY : Sample ? 0.0f : job.gates[row];
    }
    const auto bound_at = [&](std::uint32_t item) {
        if (threadIdx.x >= Columns || item >= end) return Fp16ItemBound{INFINITY, 0, 0, 0};
        return job.items.bounds[item - task.first_item];
    };
    if (threadIdx.x < Columns)
        shared.starts[0][threadIdx.x] = start_of_item(bound_at(begin + threadIdx.x), group);

    const unsigned steps = padded / kDepth;
    const unsigned total = (end - begin + Columns - 1) / Columns * steps;
    std::uint32_t fetch_first = begin;  // where the next copies come from
    unsigned fetch_step = 0;
    const auto fetch = [&](unsigned stage) {
        fetch_queries(job.queries.rows, padded, shared.query_numbers, fetch_step * kDepth,
                      shared.queries[stage]);
        fetch_rows<Columns>(job.items.rows, padded, fetch_first - task.first_item,
                            end - task.first_item, fetch_step * kDepth, shared.items[stage]);
        if (++fetch_step == steps) {
            fetch_step = 0;
            fetch_first += Columns;
        }
    };
#pragma unroll
    for (unsigned stage = 0; stage + 1 < Stages; ++stage) {
        if (stage < total) fetch(stage);
        end_of_copies();
    }

    float sums[kEights][kTiles][4];
    Fp16ItemBound next_bound{};
    std::uint32_t first = begin;
    unsigned step = 0;
    unsigned parity = 0;  // of the tile
    unsigned stage = 0;
    for (unsigned it = 0; it < total; ++it) {
        wait_for_copies<static_cast<int>(Stages) - 2>();
        __syncthreads();
        if (it + Stages - 1 < total) fetch((stage + Stages - 1) % Stages);
        end_of_copies();
        if (step == 0) {
            next_bound = bound_at(first + Columns + threadIdx.x);
#pragma unroll
            for (unsigned n = 0; n < kEights; ++n) {
                const float2 start = *reinterpret_cast<const float2*>(
                    &shared.starts[parity][warp_column + 8 * n + lane % 4 * 2]);
#pragma unroll
                for (unsigned t = 0; t < kTiles; ++t) {
                    sums[n][t][0] = start.x - gates[t][0];
                    sums[n][t][1] = start.y - gates[t][0];
                    sums[n][t][2] = start.x - gates[t][1];
                    sums[n][t][3] = start.y - gates[t][1];
                }
            }
        }
        multiply_stage(shared.queries[stage], shared.items[stage], warp_row, warp_column, sums);
        stage = stage + 1 == Stages ? 0 : stage + 1;
        if (++step < steps) continue;

        step = 0;
        parity ^= 1;
        if (threadIdx.x < Columns)
            shared.starts[parity][threadIdx.x] = start_of_item(next_bound, group);
#pragma unroll
        for (unsigned n = 0; n < kEights; ++n) {
            if constexpr (Sample) {
                largest.add(sums[n]);
            } else {
                int none = -1;
#pragma unroll
                for (unsigned i = 0; i < 4 * kTiles; ++i)
                    none &= __float_as_int(sums[n][i / 4][i % 4]);
                if (!__any_sync(~0u, none >= 0)) continue;
#pragma unroll
                for (unsigned t = 0; t < kTiles; t += kAddTiles)
                    finder.add(sums[n] + t, 16 * t, first - begin + warp_column + 8 * n);
            }
        }
        if constexpr (Sample) {
            const std::uint32_t passed = first + Columns - job.begin;
            const std::uint32_t sixteen_groups = 16 * job.group_items;
            if (passed % sixteen_groups == 0)
                largest.store(job, task.first_query + warp_row,
                              ((passed / sixteen_groups - 1) * 4 + warp / 2) * 4 + lane % 4);
        }
        first += Columns;
    }
    if constexpr (!Sample) finder.flush();
#endif
}

template <unsigned Columns, unsigned Stages, unsigned Found, bool Sample>
Status run(const Fp16FilterJob& job, std::uint32_t padded, cudaStream_t stream) {
    constexpr auto kernel = filter_wide<Columns, Stages, Found, Sample>;
    constexpr int bytes = sizeof(Shared<Columns, Stages, Found>);
    GPUTEXT_TRY(allow_shared_bytes(kernel, bytes));
    const std::uint32_t query_tiles = blocks_for(job.rows, kRows);
    const unsigned blocks = job.parts.parts != nullptr
                                ? job.parts.blocks
                                : query_tiles * blocks_for(job.end - job.begin, kItemsPerBlock);
    kernel<<<blocks, kThreads, bytes, stream>>>(job, padded, query_tiles);
    return launched("filtering neighbors");
}

/// With the largest tiles that the device's shared memory holds.
template <bool Sample>
Status run(const Fp16FilterDevice& device, const Fp16FilterJob& job, std::uint32_t padded,
           cudaStream_t stream) {
    if (device.shared_bytes >= static_cast<int>(sizeof(Shared<256, 3, 1024>)))
        return run<256, 3, 1024, Sample>(job, padded, stream);
    return run<128, 2, 256, Sample>(job, padded, stream);
}

}  // namespace

Status run_wide_filter(const Fp16FilterDevice& device, const Fp16FilterJob& job,
                       std::uint32_t padded, cudaStream_t stream) {
    if (job.largest != nullptr) return run<true>(device, job, padded, stream);
    return run<false>(device, job, padded, stream);
}

}  // namespace gputext::gpu
