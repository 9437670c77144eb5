// kernels/half_product.cuh - tensor core instructions on halves, and what filters share around them
//
// Fragments are as in the PTX manual for mma.m16n8k16: of a tile of 16 x 8 sums, a lane has those
// of rows lane / 4 and lane / 4 + 8 and of columns lane % 4 * 2 and the next one.

#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/half_filter.hpp"

namespace gputext::gpu {

/// sums += a * b for 16 rows by 8 columns.
__device__ inline void multiply_halves(float (&sums)[4], const std::uint32_t (&a)[4],
                                       std::uint32_t b0, std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(b0));
    asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}

__device__ inline std::uint32_t shared_address(const void* at) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

/// Four 8 x 8 matrices; lane l names row l % 8 of matrix l / 8.
__device__ inline void load_matrices(std::uint32_t (&to)[4], std::uint32_t row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row));
}

/// Two of them, named by the first 16 lanes.
__device__ inline void load_matrices(std::uint32_t (&to)[2], std::uint32_t row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(row));
}

/// Begins to copy 16 bytes to shared memory, or zeros unless `valid`.
__device__ inline void copy_vector(void* to, const void* from, bool valid) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(valid ? 16 : 0));
#else
    *static_cast<uint4*>(to) = valid ? *static_cast<const uint4*>(from) : uint4{0, 0, 0, 0};
#endif
}
__device__ inline void end_of_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#endif
}
/// Until all but the last `Ahead` groups of copies are there.
template <int Ahead>
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Ahead));
#endif
}

/// What is added to an item's product, for queries of a group.
__device__ inline float start_of_item(const HalfItemBound& bound, float2 group) {
    return fmaf(group.x, bound.per_norm, fmaf(group.y, bound.per_residual, -bound.offset));
}

/// Whether a sum has reached its gate: its sign, which of NaN is positive.
__device__ inline bool reaches(float sum) {
    return __float_as_int(sum) >= 0;
}

/// What a warp found, in shared memory: lists are reached through device memory, many at a time.
template <unsigned Capacity>
struct FoundBuffer {
    struct Found {
        std::uint32_t place;  // row of the warp << 26 | column of the block
        float score;
    };
    static constexpr unsigned column_bits = 26;
    static constexpr unsigned capacity = Capacity;

    Found found[Capacity];
    unsigned count;

    /// By a lane with sums that reach their gates, of 64 rows beside columns `column` and the next.
    __device__ void add(const float (&sums)[4][4], const float (&gates)[4][2],
                        std::uint32_t column) {
        unsigned size = 0;
#pragma unroll
        for (unsigned i = 0; i < 16; ++i) size += reaches(sums[i / 4][i % 4]);
        unsigned at = atomicAdd(&count, size);
#pragma unroll
        for (unsigned t = 0; t < 4; ++t) {
#pragma unroll
            for (unsigned k = 0; k < 4; ++k) {
                if (!reaches(sums[t][k])) continue;
                const unsigned row = 16 * t + k / 2 * 8 + threadIdx.x % 32 / 4;
                found[at++] = {row << column_bits | (column + k % 2), sums[t][k] + gates[t][k / 2]};
            }
        }
    }

    /// By a whole warp. Row 0 of the warp is query `first_row`.
    __device__ void flush(const HalfFilterJob& job, std::uint32_t first_row,
                          std::uint32_t first_column) {
        constexpr unsigned kAtOnce = 4;
        __syncwarp();
        const unsigned size = count;
        for (unsigned base = threadIdx.x % 32; base < size; base += 32 * kAtOnce) {
            std::uint32_t query[kAtOnce];
            std::uint32_t item[kAtOnce];
            std::uint32_t at[kAtOnce];
#pragma unroll
            for (unsigned i = 0; i < kAtOnce; ++i) {
                at[i] = UINT32_MAX;
                if (base + 32 * i >= size) continue;
                const std::uint32_t place = found[base + 32 * i].place;
                query[i] = first_row + (place >> column_bits);
                item[i] = first_column + (place & ((1u << column_bits) - 1));
                if (query[i] < job.rows && item[i] < job.end)
                    at[i] = atomicAdd(&job.lists.counts[query[i]], 1u);
            }
#pragma unroll
            for (unsigned i = 0; i < kAtOnce; ++i) {
                if (at[i] >= job.lists.capacity) continue;
                const std::size_t to = std::size_t{query[i]} * job.lists.capacity + at[i];
                job.lists.items[to] = item[i];
                if (job.lists.scores != nullptr) job.lists.scores[to] = found[base + 32 * i].score;
            }
        }
        __syncwarp();
        if (threadIdx.x % 32 == 0) count = 0;
        __syncwarp();
    }
};

/// Kernels for up to 64 dimensions, and for more.
Status run_narrow_filter(const HalfFilterDevice& device, const HalfFilterJob& job,
                         std::uint32_t padded, cudaStream_t stream);
Status run_wide_filter(const HalfFilterDevice& device, const HalfFilterJob& job,
                       std::uint32_t padded, cudaStream_t stream);
/// The same on compute capability 9.0.
Status run_hopper_filter(const HalfFilterJob& job, std::uint32_t padded, cudaStream_t stream);

}  // namespace gputext::gpu
