// The filter for more than 64 dimensions on compute capability 9.0, with its own instructions:
// products of warp groups, whose factors both lie in shared memory. Built for 9.0a.

#include <algorithm>
#include <cmath>

#include "kernels/base/early_launch.cuh"
#include "kernels/base/warp_group.cuh"
#include "kernels/knn/fp16_tiles.cuh"

namespace gputext::gpu {
namespace {

using namespace half_tiles;  // whose threads are two warp groups, of 64 queries each

constexpr unsigned kColumns = 256;  // items of a tile
constexpr unsigned kStages = 4;
constexpr unsigned kFound = 384;
constexpr std::uint32_t kTilesPerBlock = 8;  // where blocks are many
constexpr std::uint32_t kMostTiles = 64;
constexpr std::uint32_t kManyWaves = 8;
/// What a block takes beside its tiles, in tiles.
constexpr double kBeginOfBlock = 0.25;

/// Rows of 128 bytes, their vectors exchanged as the products' 128-byte swizzle wants it, which
/// needs places that are multiples of 1024.
struct Shared {
    __half queries[kStages][kRows * kDepth];
    __half items[kStages][kColumns * kDepth];
    float starts[2][kColumns];
    std::uint32_t query_numbers[kRows];
    FoundMemory<kFound, 1> found[kThreads / 32];
};
constexpr int kSharedBytes = sizeof(Shared) + 1024 - 128;  // aligned to 128 as it is

/// As filter_wide of kernels/knn/detail/fp16_wide_filter.cu, but for the products. Of the stages,
/// `Ahead` are copied meanwhile: two, while two are multiplied, or three, where memory is what
/// blocks wait for.
template <bool Sample, unsigned Ahead>
__global__ __launch_bounds__(kThreads, 1) void filter_hopper(const Fp16FilterJob job,
                                                             std::uint32_t padded,
                                                             std::uint32_t query_tiles,
                                                             std::uint32_t items_per_block) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    constexpr unsigned kEights = kColumns / 8;
    extern __shared__ uint4 memory[];
    auto& shared = *reinterpret_cast<Shared*>((reinterpret_cast<std::uintptr_t>(memory) + 1023) &
                                              ~std::uintptr_t{1023});
    let_next_begin();
    wait_for_previous();
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    const BlockTask task = take_task(job, query_tiles, items_per_block, shared.query_numbers);
    const std::uint32_t begin = task.begin, end = task.end;
    const float2 group = job.queries.groups[task.group];
    Finder<kFound, 1> finder(shared.found[warp], job, shared.query_numbers, 16 * warp, begin, end);
    Largest<1> largest;

    float gates[2];
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
        const std::uint32_t row = shared.query_numbers[16 * warp + 8 * half + lane / 4];
        gates[half] = row == UINT32_MAX ? INFINITY : Sample ? 0.0f : job.gates[row];
    }
    const auto bound_at = [&](std::uint32_t item) {
        return item < end ? job.items.bounds[item - task.first_item]
                          : Fp16ItemBound{INFINITY, 0, 0, 0};
    };
    shared.starts[0][threadIdx.x] = start_of_item(bound_at(begin + threadIdx.x), group);

    const unsigned steps = padded / kDepth;
    const unsigned total = (end - begin + kColumns - 1) / kColumns * steps;
    std::uint32_t fetch_first = begin - task.first_item;  // where the next copies come from
    unsigned fetch_step = 0;
    unsigned fetched = 0;
    const auto fetch = [&] {
        if (fetched < total) {
            const unsigned stage = fetched % kStages;
            fetch_queries(job.queries.rows, padded, shared.query_numbers, fetch_step * kDepth,
                          shared.queries[stage]);
            fetch_rows<kColumns>(job.items.rows, padded, fetch_first, end - task.first_item,
                                 fetch_step * kDepth, shared.items[stage]);
            if (++fetch_step == steps) {
                fetch_step = 0;
                fetch_first += kColumns;
            }
        }
        ++fetched;
        end_of_copies();
    };
#pragma unroll
    for (unsigned i = 0; i < Ahead; ++i) fetch();

    unsigned stage = 0;
    unsigned parity = 0;  // of the tile
    for (std::uint32_t first = begin; first < end; first += kColumns, parity ^= 1) {
        __syncthreads();
        const Fp16ItemBound next_bound = bound_at(first + kColumns + threadIdx.x);
        GroupSums<float> sums;
#pragma unroll
        for (unsigned n = 0; n < kEights; ++n) {
            const float2 start =
                *reinterpret_cast<const float2*>(&shared.starts[parity][8 * n + lane % 4 * 2]);
            sums[n][0] = start.x - gates[0];
            sums[n][1] = start.y - gates[0];
            sums[n][2] = start.x - gates[1];
            sums[n][3] = start.y - gates[1];
        }
        for (unsigned step = 0; step < steps; ++step) {
            wait_for_copies<Ahead - 1>();
            // What is copied next goes where the last products are read from.
            if constexpr (Ahead == kStages - 1) wait_for_products<0>();
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncthreads();
            const std::uint64_t queries =
                descriptor_of(shared.queries[stage] + warp / 4 * 64 * kDepth);
            const std::uint64_t items = descriptor_of(shared.items[stage]);
            begin_products();
#pragma unroll
            for (unsigned k = 0; k < kDepth / 16; ++k)
                begin_product(sums, queries + 2 * k, items + 2 * k);
            end_of_products();
            fetch();
            // The next copies go where the products before these are read from.
            if constexpr (Ahead < kStages - 1) wait_for_products<1>();
            stage = (stage + 1) % kStages;
        }
        wait_for_products<0>();

        shared.starts[parity ^ 1][threadIdx.x] = start_of_item(next_bound, group);
#pragma unroll
        for (unsigned n = 0; n < kEights; ++n) {
            if constexpr (Sample) {
                largest.add(&sums[n]);
                const std::uint32_t passed = first - job.begin + 8 * (n + 1);
                const std::uint32_t four_groups = 4 * job.group_items;
                if (passed % four_groups == 0)
                    largest.store(job, task.first_query + 16 * warp,
                                  (passed / four_groups - 1) * 4 + lane % 4);
            } else {
                const int none = __float_as_int(sums[n][0]) & __float_as_int(sums[n][1]) &
                                 __float_as_int(sums[n][2]) & __float_as_int(sums[n][3]);
                if (__any_sync(~0u, none >= 0)) finder.add(&sums[n], 0, first - begin + 8 * n);
            }
        }
    }
    if constexpr (!Sample) finder.flush();
#else
    __trap();  // never chosen
#endif
}

/// Tiles that a block takes of `tiles`, so that the blocks come in whole waves.
std::uint32_t tiles_of_block(std::uint32_t tiles, std::uint32_t query_tiles,
                             std::uint32_t processors) {
    const auto waves = [&](std::uint32_t of_block) {
        const std::uint64_t blocks = std::uint64_t{query_tiles} * blocks_for(tiles, of_block);
        return (blocks + processors - 1) / processors;
    };
    if (waves(kTilesPerBlock) > kManyWaves) return kTilesPerBlock;
    std::uint32_t best = 1;
    double least = INFINITY;
    for (std::uint32_t of_block = 1; of_block <= std::min(tiles, kMostTiles); ++of_block) {
        const double time = static_cast<double>(waves(of_block)) * (of_block + kBeginOfBlock);
        if (time >= least) continue;
        least = time;
        best = of_block;
    }
    return best;
}

template <bool Sample, unsigned Ahead>
Status run(const Fp16FilterDevice& device, const Fp16FilterJob& job, std::uint32_t padded,
           cudaStream_t stream) {
    constexpr auto kernel = filter_hopper<Sample, Ahead>;
    GPUTEXT_TRY(allow_shared_bytes(kernel, kSharedBytes));
    if (job.parts.parts != nullptr)
        return launch_early("filtering neighbors", kernel, job.parts.blocks, kThreads, kSharedBytes,
                            stream, job, padded, 0u, 0u);
    const std::uint32_t query_tiles = blocks_for(job.rows, kRows);
    const std::uint32_t tiles = blocks_for(job.end - job.begin, kColumns);
    const std::uint32_t of_block =
        tiles_of_block(tiles, query_tiles, static_cast<std::uint32_t>(device.processors));
    return launch_early("filtering neighbors", kernel, query_tiles * blocks_for(tiles, of_block),
                        kThreads, kSharedBytes, stream, job, padded, query_tiles,
                        of_block * kColumns);
}

}  // namespace

Status run_hopper_filter(const Fp16FilterDevice& device, const Fp16FilterJob& job,
                         std::uint32_t padded, cudaStream_t stream) {
    if (job.largest != nullptr) return run<true, 2>(device, job, padded, stream);
    if (job.parts.parts == nullptr && job.rows <= kRows)
        return run<false, kStages - 1>(device, job, padded, stream);
    return run<false, 2>(device, job, padded, stream);
}

}  // namespace gputext::gpu
