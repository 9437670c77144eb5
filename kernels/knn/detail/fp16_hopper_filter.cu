// The filter for more than 64 dimensions on compute capability 9.0, with its own instructions:
// products of warp groups, whose factors both lie in shared memory. Built for 9.0a.

#include <algorithm>

#include "kernels/base/launch.hpp"
#include "kernels/knn/detail/fp16_product.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;  // two warp groups, of 64 queries each
constexpr unsigned kRows = 128;     // queries of a block
constexpr unsigned kColumns = 256;  // items of a tile
constexpr unsigned kDepth = 64;     // dimensions in shared memory at a time
constexpr unsigned kStages = 4;     // two are multiplied while two are copied
constexpr unsigned kFound = 384;
constexpr std::uint32_t kItemsPerBlock = 2048;

/// Rows of 128 bytes, their vectors exchanged as the products' 128-byte swizzle wants it, which
/// needs places that are multiples of 1024.
struct Shared {
    __half queries[kStages][kRows * kDepth];
    __half items[kStages][kColumns * kDepth];
    float starts[2][kColumns];
    FoundMemory<kFound, 1> found[kThreads / 32];
};
constexpr int kSharedBytes = sizeof(Shared) + 1024 - 128;  // aligned to 128 as it is

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

constexpr unsigned kVectors = kDepth / 8;
constexpr unsigned kEights = kColumns / 8;

/// Copies dimensions [depth, depth + 64) of `Rows` rows from `first` on, or zeros from `end` on.
template <unsigned Rows>
__device__ void fetch_rows(const __half* from, std::uint32_t padded, std::uint32_t first,
                           std::uint32_t end, std::uint32_t depth, __half* to) {
    const unsigned vector = threadIdx.x % kVectors;
#pragma unroll
    for (unsigned v = 0; v < Rows * kVectors / kThreads; ++v) {
        const unsigned row = (v * kThreads + threadIdx.x) / kVectors;
        const bool valid = first + row < end;
        const std::size_t at = valid ? std::size_t{first + row} * padded : 0;
        copy_vector(to + row * kDepth + (vector ^ row % 8) * 8, from + at + depth + 8 * vector,
                    valid);
    }
}

/// Names a matrix of rows of 128 bytes, eight of which are 1024 bytes from the next eight.
__device__ std::uint64_t descriptor_of(const __half* matrix) {
    constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
    constexpr std::uint64_t kEightRows = std::uint64_t{1024 >> 4} << 32;
    constexpr std::uint64_t kUnused = std::uint64_t{1} << 16;
    return kSwizzle128 | kEightRows | kUnused | (shared_address(matrix) & 0x3ffff) >> 4;
}

/// sums += queries * items for 64 rows, 256 columns and sixteen dimensions, by a warp group, which
/// goes on before it is done.
__device__ void begin_product(float (&sums)[kEights][1][4], std::uint64_t queries,
                              std::uint64_t items) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, "
        "%8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, "
        "%24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, "
        "%40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, "
        "%56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, "
        "%72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, "
        "%88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, "
        "%104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, "
        "%120, %121, %122, %123, %124, %125, %126, %127"
        "}, %128, %129, 1, 1, 1, 0, 0;"
        : "+f"(sums[0][0][0]), "+f"(sums[0][0][1]), "+f"(sums[0][0][2]), "+f"(sums[0][0][3]),
          "+f"(sums[1][0][0]), "+f"(sums[1][0][1]), "+f"(sums[1][0][2]), "+f"(sums[1][0][3]),
          "+f"(sums[2][0][0]), "+f"(sums[2][0][1]), "+f"(sums[2][0][2]), "+f"(sums[2][0][3]),
          "+f"(sums[3][0][0]), "+f"(sums[3][0][1]), "+f"(sums[3][0][2]), "+f"(sums[3][0][3]),
          "+f"(sums[4][0][0]), "+f"(sums[4][0][1]), "+f"(sums[4][0][2]), "+f"(sums[4][0][3]),
          "+f"(sums[5][0][0]), "+f"(sums[5][0][1]), "+f"(sums[5][0][2]), "+f"(sums[5][0][3]),
          "+f"(sums[6][0][0]), "+f"(sums[6][0][1]), "+f"(sums[6][0][2]), "+f"(sums[6][0][3]),
          "+f"(sums[7][0][0]), "+f"(sums[7][0][1]), "+f"(sums[7][0][2]), "+f"(sums[7][0][3]),
          "+f"(sums[8][0][0]), "+f"(sums[8][0][1]), "+f"(sums[8][0][2]), "+f"(sums[8][0][3]),
          "+f"(sums[9][0][0]), "+f"(sums[9][0][1]), "+f"(sums[9][0][2]), "+f"(sums[9][0][3]),
          "+f"(sums[10][0][0]), "+f"(sums[10][0][1]), "+f"(sums[10][0][2]), "+f"(sums[10][0][3]),
          "+f"(sums[11][0][0]), "+f"(sums[11][0][1]), "+f"(sums[11][0][2]), "+f"(sums[11][0][3]),
          "+f"(sums[12][0][0]), "+f"(sums[12][0][1]), "+f"(sums[12][0][2]), "+f"(sums[12][0][3]),
          "+f"(sums[13][0][0]), "+f"(sums[13][0][1]), "+f"(sums[13][0][2]), "+f"(sums[13][0][3]),
          "+f"(sums[14][0][0]), "+f"(sums[14][0][1]), "+f"(sums[14][0][2]), "+f"(sums[14][0][3]),
          "+f"(sums[15][0][0]), "+f"(sums[15][0][1]), "+f"(sums[15][0][2]), "+f"(sums[15][0][3]),
          "+f"(sums[16][0][0]), "+f"(sums[16][0][1]), "+f"(sums[16][0][2]), "+f"(sums[16][0][3]),
          "+f"(sums[17][0][0]), "+f"(sums[17][0][1]), "+f"(sums[17][0][2]), "+f"(sums[17][0][3]),
          "+f"(sums[18][0][0]), "+f"(sums[18][0][1]), "+f"(sums[18][0][2]), "+f"(sums[18][0][3]),
          "+f"(sums[19][0][0]), "+f"(sums[19][0][1]), "+f"(sums[19][0][2]), "+f"(sums[19][0][3]),
          "+f"(sums[20][0][0]), "+f"(sums[20][0][1]), "+f"(sums[20][0][2]), "+f"(sums[20][0][3]),
          "+f"(sums[21][0][0]), "+f"(sums[21][0][1]), "+f"(sums[21][0][2]), "+f"(sums[21][0][3]),
          "+f"(sums[22][0][0]), "+f"(sums[22][0][1]), "+f"(sums[22][0][2]), "+f"(sums[22][0][3]),
          "+f"(sums[23][0][0]), "+f"(sums[23][0][1]), "+f"(sums[23][0][2]), "+f"(sums[23][0][3]),
          "+f"(sums[24][0][0]), "+f"(sums[24][0][1]), "+f"(sums[24][0][2]), "+f"(sums[24][0][3]),
          "+f"(sums[25][0][0]), "+f"(sums[25][0][1]), "+f"(sums[25][0][2]), "+f"(sums[25][0][3]),
          "+f"(sums[26][0][0]), "+f"(sums[26][0][1]), "+f"(sums[26][0][2]), "+f"(sums[26][0][3]),
          "+f"(sums[27][0][0]), "+f"(sums[27][0][1]), "+f"(sums[27][0][2]), "+f"(sums[27][0][3]),
          "+f"(sums[28][0][0]), "+f"(sums[28][0][1]), "+f"(sums[28][0][2]), "+f"(sums[28][0][3]),
          "+f"(sums[29][0][0]), "+f"(sums[29][0][1]), "+f"(sums[29][0][2]), "+f"(sums[29][0][3]),
          "+f"(sums[30][0][0]), "+f"(sums[30][0][1]), "+f"(sums[30][0][2]), "+f"(sums[30][0][3]),
          "+f"(sums[31][0][0]), "+f"(sums[31][0][1]), "+f"(sums[31][0][2]), "+f"(sums[31][0][3])
        : "l"(queries), "l"(items));
}
__device__ void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ void end_of_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until all but the last `Ahead` groups of products are done.
template <int Ahead>
__device__ void wait_for_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Ahead) : "memory");
}

#endif

/// As filter_wide of kernels/knn/detail/fp16_wide_filter.cu, but for the products.
template <bool Sample>
__global__ __launch_bounds__(kThreads, 1) void filter_hopper(const Fp16FilterJob job,
                                                             std::uint32_t padded,
                                                             std::uint32_t query_tiles) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    extern __shared__ uint4 memory[];
    auto& shared = *reinterpret_cast<Shared*>((reinterpret_cast<std::uintptr_t>(memory) + 1023) &
                                              ~std::uintptr_t{1023});
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    const std::uint32_t first_row = blockIdx.x % query_tiles * kRows;
    const std::uint32_t begin = job.begin + blockIdx.x / query_tiles * kItemsPerBlock;
    const std::uint32_t end = min(job.end, begin + kItemsPerBlock);
    const std::uint32_t warp_row = first_row + 16 * warp;
    const float2 group = job.queries.groups[first_row / kGroupQueries];
    Finder<kFound, 1> finder(shared.found[warp], job, warp_row, begin);
    Largest<1> largest;

    float gates[2];
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
        const std::uint32_t row = warp_row + 8 * half + lane / 4;
        gates[half] = row >= job.rows ? INFINITY : Sample ? 0.0f : job.gates[row];
    }
    const auto bound_at = [&](std::uint32_t item) {
        return item < end ? job.items.bounds[item - job.first_item]
                          : Fp16ItemBound{INFINITY, 0, 0, 0};
    };
    shared.starts[0][threadIdx.x] = start_of_item(bound_at(begin + threadIdx.x), group);

    const unsigned steps = padded / kDepth;
    const unsigned total = (end - begin + kColumns - 1) / kColumns * steps;
    std::uint32_t fetch_first = begin - job.first_item;  // where the next copies come from
    unsigned fetch_step = 0;
    unsigned fetched = 0;
    const auto fetch = [&] {
        if (fetched < total) {
            const unsigned stage = fetched % kStages;
            fetch_rows<kRows>(job.queries.rows, padded, first_row, job.rows, fetch_step * kDepth,
                              shared.queries[stage]);
            fetch_rows<kColumns>(job.items.rows, padded, fetch_first, end - job.first_item,
                                 fetch_step * kDepth, shared.items[stage]);
            if (++fetch_step == steps) {
                fetch_step = 0;
                fetch_first += kColumns;
            }
        }
        ++fetched;
        end_of_copies();
    };
    fetch();
    fetch();

    unsigned stage = 0;
    unsigned parity = 0;  // of the tile
    for (std::uint32_t first = begin; first < end; first += kColumns, parity ^= 1) {
        __syncthreads();
        const Fp16ItemBound next_bound = bound_at(first + kColumns + threadIdx.x);
        float sums[kEights][1][4];
#pragma unroll
        for (unsigned n = 0; n < kEights; ++n) {
            const float2 start =
                *reinterpret_cast<const float2*>(&shared.starts[parity][8 * n + lane % 4 * 2]);
            sums[n][0][0] = start.x - gates[0];
            sums[n][0][1] = start.y - gates[0];
            sums[n][0][2] = start.x - gates[1];
            sums[n][0][3] = start.y - gates[1];
        }
        for (unsigned step = 0; step < steps; ++step) {
            wait_for_copies<1>();
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
            // Over what the products before the last ones have read.
            fetch();
            wait_for_products<1>();
            stage = (stage + 1) % kStages;
        }
        wait_for_products<0>();

        shared.starts[parity ^ 1][threadIdx.x] = start_of_item(next_bound, group);
#pragma unroll
        for (unsigned n = 0; n < kEights; ++n) {
            if constexpr (Sample) {
                largest.add(sums[n]);
                const std::uint32_t passed = first - job.begin + 8 * (n + 1);
                const std::uint32_t four_groups = 4 * job.group_items;
                if (passed % four_groups == 0)
                    largest.store(job, warp_row, (passed / four_groups - 1) * 4 + lane % 4);
            } else {
                const int none = __float_as_int(sums[n][0][0]) & __float_as_int(sums[n][0][1]) &
                                 __float_as_int(sums[n][0][2]) & __float_as_int(sums[n][0][3]);
                if (__any_sync(~0u, none >= 0)) finder.add(sums[n], 0, first - begin + 8 * n);
            }
        }
    }
    if constexpr (!Sample) finder.flush();
#else
    __trap();  // never chosen
#endif
}

template <bool Sample>
Status run(const Fp16FilterJob& job, std::uint32_t padded, cudaStream_t stream) {
    constexpr auto kernel = filter_hopper<Sample>;
    GPUTEXT_TRY(cuda_status(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes),
        "asking for shared memory"));
    const std::uint32_t query_tiles = blocks_for(job.rows, kRows);
    const unsigned blocks = query_tiles * blocks_for(job.end - job.begin, kItemsPerBlock);
    kernel<<<blocks, kThreads, kSharedBytes, stream>>>(job, padded, query_tiles);
    return launched("filtering neighbours");
}

}  // namespace

Status run_hopper_filter(const Fp16FilterJob& job, std::uint32_t padded, cudaStream_t stream) {
    if (job.largest != nullptr) return run<true>(job, padded, stream);
    return run<false>(job, padded, stream);
}

}  // namespace gputext::gpu
