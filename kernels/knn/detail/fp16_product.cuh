// kernels/knn/detail/fp16_product.cuh - tensor core products of halves, and helpers of the filters
// that use them
//
// Fragments are as in the PTX manual for mma.m16n8k16: of a tile of 16 x 8 sums, a lane has those
// of rows lane / 4 and lane / 4 + 8 and of columns lane % 4 * 2 and the next one.

#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/base/shared_memory.cuh"
#include "kernels/base/warp.cuh"
#include "kernels/knn/detail/fp16_filter.hpp"

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

/// multiply_halves() with a separate addend, which stays unchanged.
__device__ inline void multiply_halves(float (&sums)[4], const std::uint32_t (&a)[4],
                                       std::uint32_t b0, std::uint32_t b1,
                                       const float (&starts)[4]) {
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%10, %11, %12, %13};"
        : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(starts[0]),
          "f"(starts[1]), "f"(starts[2]), "f"(starts[3]));
#else
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) sums[i] = starts[i];
    multiply_halves(sums, a, b0, b1);
#endif
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

/// What is added to an item's product, for queries of a group.
__device__ inline float start_of_item(const Fp16ItemBound& bound, float2 group) {
    return fmaf(group.x, bound.per_norm, fmaf(group.y, bound.per_residual, -bound.offset));
}

/// What a warp has found and not yet written to the lists, which lie in device memory: they are
/// written many items at a time. This lies in shared memory; each lane has the count.
template <unsigned Capacity, unsigned Tiles>
struct FoundMemory {
    struct Found {
        std::uint32_t place;  // row of the warp << 26 | column of the block
        float sum;            // a score, less its gate
    };
    Found found[Capacity];
    float4 sums[Tiles][32];
};

template <unsigned Capacity, unsigned Tiles>
class Finder {
public:
    using Memory = FoundMemory<Capacity, Tiles>;
    static constexpr unsigned most_at_once = 16 * Tiles * 8;
    static_assert(Capacity >= most_at_once);

    /// Row 0 of the warp is query `first_row`, column 0 is item `first_item`. By whole warps, as
    /// all functions.
    __device__ Finder(Memory& memory, const Fp16FilterJob& job, std::uint32_t first_row,
                      std::uint32_t first_item)
        : Finder(memory, job, nullptr, first_row, first_item, job.end) {}
    /// The queries are those that `queries` has from `first_row` on, none where that is no query's
    /// number; items end at `end`.
    __device__ Finder(Memory& memory, const Fp16FilterJob& job, const std::uint32_t* queries,
                      std::uint32_t first_row, std::uint32_t first_item, std::uint32_t end)
        : memory_(memory),
          job_(job),
          queries_(queries),
          first_row_(first_row),
          first_item_(first_item),
          end_(end) {}

    /// Adds what reaches its gate among 16 * Tiles rows from row `row` of the warp on, beside the
    /// eight columns from `column` on.
    __device__ void add(const float (*sums)[4], unsigned row, std::uint32_t column) {
        const unsigned lane = threadIdx.x % 32;
        unsigned signs = 0;  // the last sum's in the lowest bit
#pragma unroll
        for (unsigned i = 0; i < 4 * Tiles; ++i)
            signs = __funnelshift_l(__float_as_uint(sums[i / 4][i % 4]), signs, 1);
        unsigned passed = ~signs & ((1u << 4 * Tiles) - 1);
        if (!__any_sync(~0u, passed != 0)) return;
        if (count_ + most_at_once > Capacity) flush();
            // Unrolled, so that every register has a known number.
#pragma unroll
        for (unsigned t = 0; t < Tiles; ++t)
            memory_.sums[t][lane] = {sums[t][0], sums[t][1], sums[t][2], sums[t][3]};
        for (;;) {
            const unsigned lanes = __ballot_sync(~0u, passed != 0);
            if (lanes == 0) break;
            if (passed != 0) {
                const unsigned number = 4 * Tiles - __ffs(static_cast<int>(passed));
                const unsigned at = count_ + lanes_before(lanes, lane);
                const auto* own = reinterpret_cast<const float*>(&memory_.sums[number / 4][lane]);
                memory_.found[at] = {(row + number / 2 * 8 + lane / 4) << kColumnBits |
                                         (column + lane % 4 * 2 + number % 2),
                                     own[number % 4]};
                passed &= passed - 1;
            }
            count_ += __popc(lanes);
        }
    }

    /// Writes all of it to the lists.
    __device__ void flush() {
        constexpr unsigned kAtOnce = 4;
        __syncwarp();
        for (unsigned base = threadIdx.x % 32; base < count_; base += 32 * kAtOnce) {
            std::uint32_t query[kAtOnce];
            std::uint32_t item[kAtOnce];
            std::uint32_t at[kAtOnce];
#pragma unroll
            for (unsigned i = 0; i < kAtOnce; ++i) {
                at[i] = UINT32_MAX;
                if (base + 32 * i >= count_) continue;
                const std::uint32_t place = memory_.found[base + 32 * i].place;
                query[i] = first_row_ + (place >> kColumnBits);
                if (queries_ != nullptr) query[i] = queries_[query[i]];
                item[i] = first_item_ + (place & ((1u << kColumnBits) - 1));
                if (query[i] >= job_.rows || item[i] >= end_) continue;
                at[i] = atomicAdd(&job_.lists.counts[query[i]], 1u);
                if (job_.parts.items != nullptr) item[i] = job_.parts.items[item[i]];
            }
#pragma unroll
            for (unsigned i = 0; i < kAtOnce; ++i) {
                if (at[i] >= job_.lists.capacity) continue;
                const std::size_t to = std::size_t{query[i]} * job_.lists.capacity + at[i];
                job_.lists.items[to] = item[i];
                if (job_.lists.scores != nullptr)
                    job_.lists.scores[to] = memory_.found[base + 32 * i].sum + job_.gates[query[i]];
            }
        }
        __syncwarp();
        count_ = 0;
    }

private:
    static constexpr unsigned kColumnBits = 26;

    Memory& memory_;
    const Fp16FilterJob& job_;
    const std::uint32_t* queries_;
    std::uint32_t first_row_;
    std::uint32_t first_item_;
    std::uint32_t end_;
    unsigned count_ = 0;
};

/// Largest scores of groups of samples, for 2 * Tiles rows of a lane.
template <unsigned Tiles>
struct Largest {
    float values[Tiles][2];

    __device__ Largest() { clear(); }
    __device__ void clear() {
#pragma unroll
        for (unsigned t = 0; t < Tiles; ++t) values[t][0] = values[t][1] = -INFINITY;
    }
    __device__ void add(const float (*sums)[4]) {
#pragma unroll
        for (unsigned t = 0; t < Tiles; ++t) {
            values[t][0] = fmaxf(values[t][0], fmaxf(sums[t][0], sums[t][1]));
            values[t][1] = fmaxf(values[t][1], fmaxf(sums[t][2], sums[t][3]));
        }
    }
    /// To the place of a group, for rows from query `first_row` on; and begins anew.
    __device__ void store(const Fp16FilterJob& job, std::uint32_t first_row, unsigned group) {
#pragma unroll
        for (unsigned half = 0; half < 2 * Tiles; ++half) {
            const std::uint32_t row = first_row + 8 * half + threadIdx.x % 32 / 4;
            if (row < job.rows)
                job.largest[std::size_t{row} * job.groups + group] = values[half / 2][half % 2];
        }
        clear();
    }
};

/// Marks which of 128 items reach their gates, for 2 * Tiles rows of a lane: see MarkedItems.
template <unsigned Tiles>
struct Marks {
    std::uint32_t signs[Tiles][2] = {};

    /// Eight items' sums.
    __device__ void add(const float (*sums)[4]) {
#pragma unroll
        for (unsigned t = 0; t < Tiles; ++t)
#pragma unroll
            for (unsigned i = 0; i < 4; ++i)
                signs[t][i / 2] = __funnelshift_l(__float_as_uint(sums[t][i]), signs[t][i / 2], 1);
    }
    /// To the words of 128 items, for rows from query `first_row` on.
    __device__ void store(const Fp16FilterJob& job, std::uint32_t words, std::uint32_t first_row,
                          std::uint32_t first_word) const {
        const unsigned lane = threadIdx.x % 32;
#pragma unroll
        for (unsigned half = 0; half < 2 * Tiles; ++half) {
            const std::uint32_t row = first_row + 8 * half + lane / 4;
            if (row < job.rows)
                job.marks[std::size_t{row} * words + first_word + lane % 4] =
                    ~signs[half / 2][half % 2];
        }
    }
};

/// The filter for 33 to 64 dimensions and compute capability 9.0, where there are no lists.
Status run_hopper_narrow_filter(const Fp16FilterDevice& device, const Fp16FilterJob& job,
                                std::uint32_t padded, cudaStream_t stream);
/// Kernels for up to 64 dimensions, and for more.
Status run_narrow_filter(const Fp16FilterDevice& device, const Fp16FilterJob& job,
                         std::uint32_t padded, cudaStream_t stream);
Status run_wide_filter(const Fp16FilterDevice& device, const Fp16FilterJob& job,
                       std::uint32_t padded, cudaStream_t stream);
/// The filter for compute capability 9.0.
Status run_hopper_filter(const Fp16FilterDevice& device, const Fp16FilterJob& job,
                         std::uint32_t padded, cudaStream_t stream);

}  // namespace gputext::gpu
