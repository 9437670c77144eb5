// The filter for 33 to 64 dimensions on compute capability 9.0, where items are marked or the
// largest scores of groups are wanted. Built for 9.0a.
//
// A block has a multiprocessor to itself: four warp groups keep 64 queries each in registers and
// multiply them with tiles of items in shared memory, 128 items at a time. While one looks at its
// scores, the tensor cores work for the others, which may be a tile ahead. Blocks have equal shares
// of the tiles of all queries, and go on with the next queries where these begin in their share.

#include <algorithm>

#include "kernels/base/early_launch.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp_group.cuh"
#include "kernels/knn/fp16_tiles.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kWarps = 16;
constexpr unsigned kThreads = 32 * kWarps;
constexpr unsigned kItems = 256;    // of a tile
constexpr unsigned kColumns = 128;  // that are multiplied at a time
constexpr unsigned kAhead = 2;      // tiles that are being copied
// One more is being multiplied, and slower warp groups may still multiply the one before it.
constexpr unsigned kStages = kAhead + 2;
static_assert(16 * kWarps == kGroupQueries);

/// Rows of 128 bytes, their vectors exchanged as the products' 128-byte swizzle wants it, which
/// needs places that are multiples of 1024.
struct Shared {
    __half items[kStages][kItems * half_tiles::kDepth];
    float starts[kStages][kItems];  // at place_of_start()
    std::uint64_t ready[kStages];   // barriers: a warp arrives when its part of a tile is there
};
constexpr int kSharedBytes = sizeof(Shared) + 1024;

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

constexpr unsigned kEights = kColumns / 8;
constexpr unsigned kChecked = 64;  // columns: groups of samples end at multiples of them

/// Where a lane finds the starts of its two columns in each of two eights together.
__device__ unsigned place_of_start(unsigned column) {
    return column / 16 * 16 + column % 8 / 2 * 4 + column / 8 % 2 * 2 + column % 2;
}

__device__ void begin_barrier(std::uint64_t* barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(kWarps)
                 : "memory");
}
__device__ void arrive(std::uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
                 : "memory");
}
/// Waits until all warps have arrived. `round`: odd at every second use of the barrier, else even.
__device__ void wait_for(std::uint64_t* barrier, unsigned round) {
    std::uint32_t done = 0;
    while (done == 0)
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.u32 %0, 1, 0, p;\n"
            "}"
            : "=r"(done)
            : "r"(shared_address(barrier)), "r"(round)
            : "memory");
    __syncwarp();
}

/// 256 queries, and the first of the items.
struct Tile {
    std::uint32_t queries;
    std::uint32_t first;
};

/// A block's share of the work, in units of so many items beside 256 queries. Its last tile may
/// reach beyond the last unit.
struct Share {
    Tile begin;
    std::uint32_t last_queries;
    std::uint32_t last_end;
    std::uint32_t job_begin;
    std::uint32_t units_end;  // of any queries' last unit

    __device__ Share(const Fp16FilterJob& job, std::uint32_t unit, std::uint32_t units) {
        const std::uint64_t all =
            std::uint64_t{units} * ((job.rows + kGroupQueries - 1) / kGroupQueries);
        const std::uint64_t from = all * blockIdx.x / gridDim.x;
        const std::uint64_t last = all * (blockIdx.x + 1) / gridDim.x - 1;
        job_begin = job.begin;
        units_end = job.begin + units * unit;
        begin = {static_cast<std::uint32_t>(from / units),
                 job.begin + static_cast<std::uint32_t>(from % units) * unit};
        last_queries = static_cast<std::uint32_t>(last / units);
        last_end = job.begin + static_cast<std::uint32_t>(last % units + 1) * unit;
    }
    __device__ bool has(const Tile& tile) const {
        return (tile.queries < last_queries) |
               ((tile.queries == last_queries) & (tile.first < last_end));
    }
    /// Where the tile's queries have no more items in this share.
    __device__ std::uint32_t end_of(const Tile& tile) const {
        return tile.queries == last_queries ? last_end : units_end;
    }
    __device__ Tile next(Tile tile) const {
        tile.first += kItems;
        return tile.first < units_end ? tile : Tile{tile.queries + 1, job_begin};
    }
};

/// What becomes of a warp's scores, of 16 queries.
template <bool Marked>
class Sink;

template <>
class Sink<true> {
public:
    /// Called before the first tile with other queries, where a unit begins.
    __device__ void begin(const Fp16FilterJob& job, std::uint32_t first_row, std::uint32_t first) {
        const std::uint32_t words = MarkedItems::words_of(job.end - job.begin);
        const std::uint32_t row = first_row + threadIdx.x % 32 / 4;
        to_ = job.marks + std::size_t{row} * words + (first - job.begin) / kColumns * 4 +
              threadIdx.x % 4;
        eight_rows_ = std::size_t{8} * words;
        rows_ = row < job.rows ? job.rows - row : 0;
    }
    __device__ void take(const Fp16FilterJob&, const float (&sums)[kEights][4]) {
        Marks<1> marks;
#pragma unroll
        for (unsigned n = 0; n < kEights; ++n) marks.add(&sums[n]);
        if (rows_ > 0) to_[0] = ~marks.signs[0][0];
        if (rows_ > 8) to_[eight_rows_] = ~marks.signs[0][1];
        to_ += 4;
    }

private:
    std::uint32_t* to_ = nullptr;  // where the lane's next word goes
    std::size_t eight_rows_ = 0;   // words
    std::uint32_t rows_ = 0;       // from the lane's first one on
};

template <>
class Sink<false> {
public:
    /// As above.
    __device__ void begin(const Fp16FilterJob& job, std::uint32_t first_row, std::uint32_t first) {
        left_ = 4 * job.group_items;
        group_ = (first - job.begin) / left_ * 4;
        first_row_ = first_row;
        largest_.clear();
    }
    __device__ void take(const Fp16FilterJob& job, const float (&sums)[kEights][4]) {
#pragma unroll
        for (unsigned n = 0; n < kEights; ++n) {
            largest_.add(&sums[n]);
            if (8 * (n + 1) % kChecked != 0) continue;
            left_ -= kChecked;
            if (left_ != 0) continue;
            if (group_ < job.groups) largest_.store(job, first_row_, group_ + threadIdx.x % 4);
            left_ = 4 * job.group_items;
            group_ += 4;
        }
    }

private:
    std::uint32_t left_ = 0;   // columns of the four groups that are looked at
    std::uint32_t group_ = 0;  // the first of these
    std::uint32_t first_row_ = 0;
    Largest<1> largest_;
};

#endif

template <unsigned Steps, bool Marked>
__global__ __launch_bounds__(kThreads, 1) void filter_narrow_hopper(const Fp16FilterJob job,
                                                                    std::uint32_t unit,
                                                                    std::uint32_t units) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    constexpr unsigned kVectors = 2 * Steps;  // of a row
    static_assert(kItems * kVectors % kThreads == 0);
    constexpr unsigned kCopies = kItems * kVectors / kThreads;  // of a thread and tile
    extern __shared__ uint4 memory[];
    let_next_begin();
    auto& shared = *reinterpret_cast<Shared*>(reinterpret_cast<std::byte*>(memory) +
                                              (0u - shared_address(memory)) % 1024);
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    if (threadIdx.x < kStages) begin_barrier(&shared.ready[threadIdx.x]);
    __syncthreads();
    wait_for_previous();

    const Share share(job, unit, units);
    unsigned places[kCopies];
#pragma unroll
    for (unsigned v = 0; v < kCopies; ++v) {
        const unsigned at = v * kThreads + threadIdx.x;
        places[v] = half_tiles::place_of(at / kVectors, at % kVectors);
    }
    Tile fetched = share.begin;
    unsigned fetched_stage = 0;
    const auto fetch = [&] {
        if (share.has(fetched)) {
            const auto* const from = reinterpret_cast<const uint4*>(job.items.rows) +
                                     std::size_t{fetched.first - job.first_item} * kVectors +
                                     threadIdx.x;
            const std::uint32_t left =
                fetched.first < job.end ? min(job.end - fetched.first, kItems) * kVectors : 0;
#pragma unroll
            for (unsigned v = 0; v < kCopies; ++v)
                copy_vector(&shared.items[fetched_stage][places[v]], from + v * kThreads,
                            v * kThreads + threadIdx.x < left);
            fetched = share.next(fetched);
        }
        end_of_copies();
        fetched_stage = (fetched_stage + 1) % kStages;
    };
    // The calling thread's item of a tile, whose start it computes when it has been read.
    Fp16ItemBound bound{};
    float2 group{};
    const auto has_item = [&](const Tile& tile) {
        return (threadIdx.x < kItems) & share.has(tile) & (tile.first + threadIdx.x < job.end);
    };
    const auto fetch_bound = [&](const Tile& tile) {
        if (!has_item(tile)) return;
        bound = job.items.bounds[tile.first + threadIdx.x - job.first_item];
        group = job.queries.groups[tile.queries];
    };
    const auto set_start = [&](const Tile& tile, unsigned stage) {
        if (threadIdx.x < kItems)
            shared.starts[stage][place_of_start(threadIdx.x)] =
                has_item(tile) ? start_of_item(bound, group) : -INFINITY;
    };
    // When what the warp copied of a tile is there, and its starts. One lane arrives for all, whose
    // writes are before its arrival by __syncwarp(); racecheck does not follow that, and reports
    // the starts.
    const auto tell_ready = [&](unsigned stage) {
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane == 0) arrive(&shared.ready[stage]);
    };

    fetch_bound(share.begin);
#pragma unroll
    for (unsigned i = 0; i < kAhead; ++i) fetch();
    set_start(share.begin, 0);
    wait_for_copies<kAhead - 1>();
    tell_ready(0);
    fetch_bound(share.next(share.begin));

    std::uint32_t queries = UINT32_MAX;  // whose rows are in registers
    std::uint32_t rows[Steps][4];
    [[maybe_unused]] float gates[2] = {};
    Sink<Marked> sink;
    unsigned stage = 0;
    unsigned round = 0;
    for (Tile tile = share.begin; share.has(tile);) {
        // From here on all warps have left the tile before the last one, where the next copies go.
        wait_for(&shared.ready[stage], round);
        const Tile next = share.next(tile);
        const unsigned next_stage = (stage + 1) % kStages;
        set_start(next, next_stage);
        wait_for_copies<kAhead - 2>();
        tell_ready(next_stage);
        fetch();
        fetch_bound(share.next(next));

        if (tile.queries != queries) {
            queries = tile.queries;
            const std::uint32_t first_row = queries * kGroupQueries + 16 * warp;
            sink.begin(job, first_row, tile.first);
#pragma unroll
            for (unsigned half = 0; half < 2; ++half) {
                const std::uint32_t row = first_row + 8 * half + lane / 4;
                const bool is = row < job.rows;
                if constexpr (Marked) gates[half] = is ? job.gates[row] : INFINITY;
                const auto* words = reinterpret_cast<const std::uint32_t*>(
                                        job.queries.rows + std::size_t{is ? row : 0} * 16 * Steps) +
                                    lane % 4;
#pragma unroll
                for (unsigned step = 0; step < Steps; ++step) {
                    rows[step][half] = is ? words[8 * step] : 0;
                    rows[step][2 + half] = is ? words[8 * step + 4] : 0;
                }
            }
        }

        const std::uint32_t end = min(share.end_of(tile), tile.first + kItems);
#pragma unroll 1
        for (unsigned column = 0; tile.first + column < end; column += kColumns) {
            float sums[kEights][4];
            const auto* const starts =
                reinterpret_cast<const float4*>(&shared.starts[stage][column]) + lane % 4;
#pragma unroll
            for (unsigned n = 0; n < kEights; n += 2) {
                const float4 four = starts[2 * n];
                const float own[2][2] = {{four.x, four.y}, {four.z, four.w}};
#pragma unroll
                for (unsigned i = 0; i < 4; ++i)
#pragma unroll
                    for (unsigned e = 0; e < 2; ++e)
                        sums[n + e][i] = Marked ? own[e][i % 2] - gates[i / 2] : own[e][i % 2];
            }
            const std::uint64_t items =
                descriptor_of(&shared.items[stage][column * half_tiles::kDepth]);
            begin_products();
#pragma unroll
            for (unsigned step = 0; step < Steps; ++step)
                begin_product(sums, rows[step], items + 2 * step);
            end_of_products();
            wait_for_products<0>();
            // The sums are not read before this.
#pragma unroll
            for (auto& eight : sums)
#pragma unroll
                for (float& sum : eight) asm volatile("" : "+f"(sum)::"memory");
            sink.take(job, sums);
        }

        tile = next;
        stage = next_stage;
        if (stage == 0) round ^= 1;
    }
    wait_for_copies<0>();
#else
    __trap();  // never chosen
#endif
}

template <unsigned Steps, bool Marked>
Status run(const Fp16FilterDevice& device, const Fp16FilterJob& job, cudaStream_t stream) {
    constexpr auto kernel = filter_narrow_hopper<Steps, Marked>;
    GPUTEXT_TRY(allow_shared_bytes(kernel, kSharedBytes));
    const std::uint32_t unit = Marked ? kColumns : std::max(4 * job.group_items, kColumns);
    const std::uint32_t units = blocks_for(job.end - job.begin, unit);
    const std::uint64_t all = std::uint64_t{units} * blocks_for(job.rows, kGroupQueries);
    const auto blocks = static_cast<unsigned>(
        std::min<std::uint64_t>(all, static_cast<unsigned>(device.processors)));
    return launch_early("filtering neighbors", kernel, blocks, kThreads, kSharedBytes, stream, job,
                        unit, units);
}

template <unsigned Steps>
Status run(const Fp16FilterDevice& device, const Fp16FilterJob& job, cudaStream_t stream) {
    return job.marks != nullptr ? run<Steps, true>(device, job, stream)
                                : run<Steps, false>(device, job, stream);
}

}  // namespace

Status run_hopper_narrow_filter(const Fp16FilterDevice& device, const Fp16FilterJob& job,
                                std::uint32_t padded, cudaStream_t stream) {
    return padded == 48 ? run<3>(device, job, stream) : run<4>(device, job, stream);
}

}  // namespace gputext::gpu
