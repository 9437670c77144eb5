// Products of matrices of bytes on compute capability 9.0, with its own instructions. Built
// for 9.0a.
//
// Two blocks of threads form a cluster and compute 256 x 256 sums: each has 128 rows of its own,
// and the 256 right rows are copied once for both. One warp copies, two groups of four multiply.

#include <algorithm>

#include "kernels/base/launch.hpp"
#include "kernels/base/warp_group.cuh"
#include "kernels/thesaurus/detail/byte_product.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kCluster = 2;
constexpr unsigned kConsumers = 8;  // warps that multiply
constexpr unsigned kThreads = 32 * (kConsumers + 1);
constexpr unsigned kStages = 4;
constexpr unsigned kStageBytes = 3 * kBlockBytes;  // one block of left rows, two of right ones
constexpr unsigned kGroup = 8;                     // right tiles that are worked on side by side

struct Shared {
    std::uint8_t stages[kStages][kStageBytes];
    unsigned long long full[kStages], empty[kStages];
};
constexpr int kSharedBytes = sizeof(Shared) + 1024;  // aligned to 1024

/// The tiles of 256 x 256 of a job, in an order in which neighbors share rows. A product with
/// itself has some below its diagonal, which are left out.
struct Tiles {
    std::uint32_t left, right;
    bool symmetric;

    __host__ __device__ std::uint32_t rows_of_group(std::uint32_t group) const {
        const std::uint32_t rows = (group + 1) * kGroup;
        return symmetric && rows < left ? rows : left;
    }
    __host__ __device__ std::uint32_t width_of_group(std::uint32_t group) const {
        const std::uint32_t rest = right - group * kGroup;
        return rest < kGroup ? rest : kGroup;
    }
    __host__ __device__ std::uint32_t groups() const { return (right + kGroup - 1) / kGroup; }
    __host__ __device__ std::uint32_t size() const {
        std::uint32_t sum = 0;
        for (std::uint32_t g = 0; g < groups(); ++g) sum += rows_of_group(g) * width_of_group(g);
        return sum;
    }
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// Where a tile is. False for those left out.
__device__ bool find_tile(const Tiles& tiles, std::uint32_t number, std::uint32_t& row,
                          std::uint32_t& column) {
    std::uint32_t group = 0;
    for (;; ++group) {
        const std::uint32_t size = tiles.rows_of_group(group) * tiles.width_of_group(group);
        if (number < size) break;
        number -= size;
    }
    row = number / tiles.width_of_group(group);
    column = group * kGroup + number % tiles.width_of_group(group);
    return !tiles.symmetric || column >= row;
}

__device__ void init_barrier(unsigned long long* barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
                 "r"(arrivals)
                 : "memory");
}
__device__ void expect_bytes(unsigned long long* barrier, unsigned bytes) {
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
        "r"(bytes)
        : "memory");
}
__device__ void wait_for(unsigned long long* barrier, unsigned parity) {
    asm volatile(
        "{\n"
        ".reg .pred done;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@done bra over;\n"
        "bra again;\n"
        "over:\n"
        "}" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}
/// At the same barrier of another block of the cluster.
__device__ void arrive_at(unsigned long long* barrier, unsigned block) {
    asm volatile(
        "{\n"
        ".reg .b32 remote;\n"
        "mapa.shared::cluster.u32 remote, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
        "}" ::"r"(shared_address(barrier)),
        "r"(block)
        : "memory");
}
__device__ void copy_block(void* to, const void* from, unsigned long long* barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(to)),
        "l"(from), "r"(kBlockBytes), "r"(shared_address(barrier))
        : "memory");
}
/// To all blocks of the cluster.
__device__ void copy_block_to_all(void* to, const void* from, unsigned long long* barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(to)),
        "l"(from), "r"(kBlockBytes), "r"(shared_address(barrier)),
        "h"(static_cast<std::uint16_t>((1u << kCluster) - 1))
        : "memory");
}
__device__ unsigned rank_in_cluster() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ void wait_for_cluster() {
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n"
        "barrier.cluster.wait.acquire.aligned;" ::
            : "memory");
}

using Sums = GroupSums<std::uint32_t>;

/// Which stage is next, and how often all of them have been used.
struct Place {
    unsigned stage = 0, parity = 0;

    __device__ void advance() {
        if (++stage < kStages) return;
        stage = 0;
        parity ^= 1;
    }
};

__device__ void copy_tile(const WordProductJob& job, Shared& shared, unsigned rank,
                          std::uint32_t row, std::uint32_t column, Place& place) {
    const std::size_t stride = std::size_t{job.column_blocks} * kBlockBytes;  // of 128 rows
    for (unsigned s = 0; s < job.count; ++s) {
        const std::uint8_t* left = job.segments[s].left + (std::size_t{row} * 2 + rank) * stride;
        const std::uint8_t* right =
            job.segments[s].right + (std::size_t{column} * 2 + rank) * stride;
        for (std::uint32_t block = 0; block < job.column_blocks; ++block) {
            wait_for(&shared.empty[place.stage], place.parity ^ 1);
            unsigned long long* const full = &shared.full[place.stage];
            std::uint8_t* const to = shared.stages[place.stage];
            expect_bytes(full, kStageBytes);
            copy_block(to, left + std::size_t{block} * kBlockBytes, full);
            copy_block_to_all(to + (1 + rank) * kBlockBytes,
                              right + std::size_t{block} * kBlockBytes, full);
            place.advance();
        }
    }
}

__device__ void release_stage(Shared& shared, unsigned stage) {
    if (threadIdx.x % 32 < kCluster) arrive_at(&shared.empty[stage], threadIdx.x % 32);
}

/// Adds the products of so many stages.
__device__ __forceinline__ void multiply_stages(Shared& shared, Sums& sums, std::uint32_t count,
                                                Place& place) {
    const unsigned group = threadIdx.x / 128;
    unsigned last = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        wait_for(&shared.full[place.stage], place.parity);
        const std::uint64_t left =
            descriptor_of(shared.stages[place.stage] + group * (kBlockBytes / 2));
        const std::uint64_t right = descriptor_of(shared.stages[place.stage] + kBlockBytes);
        begin_products();
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) begin_product(sums, left + 2 * k, right + 2 * k);
        end_of_products();
        wait_for_products<1>();
        if (i > 0) release_stage(shared, last);
        last = place.stage;
        place.advance();
    }
    wait_for_products<0>();
    if (count > 0) release_stage(shared, last);
}

__device__ __forceinline__ void multiply_tile(const WordProductJob& job, Shared& shared, Sums& sums,
                                              Place& place) {
#pragma unroll
    for (unsigned n = 0; n < 32; ++n)
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) sums[n][i] = 0;
    multiply_stages(shared, sums, job.upper * job.column_blocks, place);
#pragma unroll
    for (unsigned n = 0; n < 32; ++n)
#pragma unroll
        for (unsigned i = 0; i < 4; ++i) sums[n][i] <<= 8;
    multiply_stages(shared, sums, (job.count - job.upper) * job.column_blocks, place);
}

template <bool Wide>
__device__ void store_tile(const WordProductJob& job, const Sums& sums, std::uint32_t first_row,
                           std::uint32_t first_column) {
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned n = 0; n < 32; ++n)
#pragma unroll
        for (unsigned half = 0; half < 2; ++half) {
            const std::size_t row = first_row + 8 * half + lane / 4;
            const std::size_t column = first_column + 8 * n + lane % 4 * 2;
            const std::uint32_t a = sums[n][2 * half], b = sums[n][2 * half + 1];
            if constexpr (Wide) {
                auto* const to = reinterpret_cast<ulonglong2*>(
                    static_cast<unsigned long long*>(job.sums) + row * job.stride + column);
                ulonglong2 both{static_cast<unsigned long long>(a) << job.shift,
                                static_cast<unsigned long long>(b) << job.shift};
                if (job.add) {
                    const ulonglong2 there = *to;
                    both.x += there.x;
                    both.y += there.y;
                }
                *to = both;
                // On the diagonal of a product with itself there is nothing to mirror.
                if (job.mirrored == nullptr ||
                    (job.symmetric && first_row / 256 == first_column / 256))
                    continue;
                auto* const other = static_cast<unsigned long long*>(job.mirrored);
                other[column * job.mirrored_stride + row] = both.x;
                other[(column + 1) * job.mirrored_stride + row] = both.y;
            } else {
                auto* const to = static_cast<std::uint32_t*>(job.sums);
                *reinterpret_cast<uint2*>(to + row * job.stride + column) = {a, b};
                if (job.mirrored == nullptr) continue;
                auto* const other = static_cast<std::uint32_t*>(job.mirrored);
                other[column * job.mirrored_stride + row] = a;
                other[(column + 1) * job.mirrored_stride + row] = b;
            }
        }
}

#endif

// What else it is compiled for has none.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define GPUTEXT_IN_CLUSTERS __cluster_dims__(kCluster, 1, 1)
#else
#define GPUTEXT_IN_CLUSTERS
#endif

template <bool Wide>
__global__ GPUTEXT_IN_CLUSTERS __launch_bounds__(kThreads, 1) void multiply_words(
    const __grid_constant__ WordProductJob job, const Tiles tiles, std::uint32_t count) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ uint4 memory[];
    auto& shared = *reinterpret_cast<Shared*>((reinterpret_cast<std::uintptr_t>(memory) + 1023) &
                                              ~std::uintptr_t{1023});
    const unsigned rank = rank_in_cluster();
    if (threadIdx.x == 0) {
        for (unsigned stage = 0; stage < kStages; ++stage) {
            init_barrier(&shared.full[stage], 1);
            init_barrier(&shared.empty[stage], kConsumers * kCluster);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    wait_for_cluster();
    const unsigned clusters = gridDim.x / kCluster;
    const unsigned warp = threadIdx.x / 32;
    Place place;
    std::uint32_t row, column;
    if (warp == kConsumers) {
        if (threadIdx.x % 32 == 0)
            for (std::uint32_t tile = blockIdx.x / kCluster; tile < count; tile += clusters)
                if (find_tile(tiles, tile, row, column))
                    copy_tile(job, shared, rank, row, column, place);
        __syncwarp();
    } else {
        Sums sums;
        for (std::uint32_t tile = blockIdx.x / kCluster; tile < count; tile += clusters) {
            if (!find_tile(tiles, tile, row, column)) continue;
            multiply_tile(job, shared, sums, place);
            store_tile<Wide>(job, sums, row * 256 + rank * 128 + warp * 16, column * 256);
        }
    }
    // A block whose neighbor still copies for it, or still arrives at its barriers, stays.
    wait_for_cluster();
#else
    __trap();  // never chosen
#endif
}

template <bool Wide>
Status run(const WordProductJob& job, cudaStream_t stream) {
    constexpr auto kernel = multiply_words<Wide>;
    GPUTEXT_TRY(allow_shared_bytes(kernel, kSharedBytes));
    int device = 0, processors = 0;
    GPUTEXT_TRY(cuda_status(cudaGetDevice(&device), "asking for the device"));
    GPUTEXT_TRY(
        cuda_status(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
                    "asking for the device"));
    const Tiles tiles{job.left_rows / kProductTile, job.right_rows / kProductTile, job.symmetric};
    const std::uint32_t count = tiles.size();
    if (count == 0 || job.column_blocks == 0) return {};
    const unsigned clusters = std::min<unsigned>(count, processors / kCluster);
    kernel<<<clusters * kCluster, kThreads, kSharedBytes, stream>>>(job, tiles, count);
    return launched("multiplying frequent features");
}

}  // namespace

bool has_word_product() {
    int device = 0, major = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) ==
               cudaSuccess &&
           major == 9;
}

Status run_word_product(const WordProductJob& job, cudaStream_t stream) {
    return job.wide ? run<true>(job, stream) : run<false>(job, stream);
}

}  // namespace gputext::gpu
