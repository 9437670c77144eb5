// kernels/base/bit_product.cuh - the AND product of matrices of bits, from compute capability 8.0 on

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/base/launch.hpp"

namespace gputext::gpu {

/// Whether the current device has it.
inline Status has_bit_product(bool& has) {
    return has_capability(8, has);
}

#if defined(__CUDACC__) && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800)

/// sums = ones(a AND b) + start, for 16 rows by 8 columns of 256 bits. Fragments as in the PTX
/// manual. A lane's two words of K may lie anywhere, if rows and columns have them alike.
__device__ inline void multiply_bits(int (&sums)[4], const std::uint32_t (&a)[4], uint2 b,
                                     const int (&start)[4]) {
    asm("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=r"(sums[0]), "=r"(sums[1]), "=r"(sums[2]), "=r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y), "r"(start[0]),
          "r"(start[1]), "r"(start[2]), "r"(start[3]));
}

#endif

}  // namespace gputext::gpu
