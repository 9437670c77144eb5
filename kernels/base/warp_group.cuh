// kernels/base/warp_group.cuh - products of matrices in shared memory by four warps together
//
// Instructions of compute capability 9.0 alone ("wgmma" in the PTX ISA): 64 rows times 256 columns,
// and 32 bytes of each. Sources that include this file are built for 9.0a, too.

#pragma once

#include <cstdint>

#include "kernels/base/shared_memory.cuh"

namespace gputext::gpu {

/// A lane's sums: of eight columns after the other, two of a row and two of the row eight below.
template <class Number>
using GroupSums = Number[32][4];

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// Names a matrix of rows of 128 bytes, eight of which are 1024 bytes from the next eight.
__device__ inline std::uint64_t descriptor_of(const void* matrix) {
    constexpr std::uint64_t kSwizzle128 = std::uint64_t{1} << 62;
    constexpr std::uint64_t kEightRows = std::uint64_t{1024 >> 4} << 32;
    constexpr std::uint64_t kUnused = std::uint64_t{1} << 16;
    return kSwizzle128 | kEightRows | kUnused | (shared_address(matrix) & 0x3ffff) >> 4;
}

// The 128 operands of an instruction.
#define GPUTEXT_FOUR_SUMS(kind, sums, n) \
    kind(sums[n][0]), kind(sums[n][1]), kind(sums[n][2]), kind(sums[n][3])
#define GPUTEXT_SIXTEEN_SUMS(kind, sums, n)                                   \
    GPUTEXT_FOUR_SUMS(kind, sums, n), GPUTEXT_FOUR_SUMS(kind, sums, (n) + 1), \
        GPUTEXT_FOUR_SUMS(kind, sums, (n) + 2), GPUTEXT_FOUR_SUMS(kind, sums, (n) + 3)
#define GPUTEXT_GROUP_SUMS(kind, sums)                                              \
    GPUTEXT_SIXTEEN_SUMS(kind, sums, 0), GPUTEXT_SIXTEEN_SUMS(kind, sums, 4),       \
        GPUTEXT_SIXTEEN_SUMS(kind, sums, 8), GPUTEXT_SIXTEEN_SUMS(kind, sums, 12),  \
        GPUTEXT_SIXTEEN_SUMS(kind, sums, 16), GPUTEXT_SIXTEEN_SUMS(kind, sums, 20), \
        GPUTEXT_SIXTEEN_SUMS(kind, sums, 24), GPUTEXT_SIXTEEN_SUMS(kind, sums, 28)
#define GPUTEXT_GROUP_PRODUCT(instruction, flags, kind, sums, left, right)            \
    asm volatile(instruction                                                          \
                 " {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, "     \
                 "%14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, "  \
                 "%27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "  \
                 "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "  \
                 "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, "  \
                 "%66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, "  \
                 "%79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, "  \
                 "%92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, "   \
                 "%104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, " \
                 "%115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, " \
                 "%126, %127}, %128, %129, " flags ";"                                \
                 : GPUTEXT_GROUP_SUMS(kind, sums)                                     \
                 : "l"(left), "l"(right))

/// sums += left * right^T for sixteen dimensions, by a warp group, which goes on before it is done.
__device__ __forceinline__ void begin_product(GroupSums<float>& sums, std::uint64_t left,
                                              std::uint64_t right) {
    GPUTEXT_GROUP_PRODUCT("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16", "1, 1, 1, 0, 0",
                          "+f", sums, left, right);
}
/// As that, for 32 dimensions of a byte each.
__device__ __forceinline__ void begin_product(GroupSums<std::uint32_t>& sums, std::uint64_t left,
                                              std::uint64_t right) {
    GPUTEXT_GROUP_PRODUCT("wgmma.mma_async.sync.aligned.m64n256k32.s32.u8.u8", "1", "+r", sums,
                          left, right);
}

/// sums += left * right^T for sixteen dimensions and 128 columns. A lane has of `left` what it has
/// of a factor of mma.m16n8k16; neither this nor the sums may change before the product is done.
__device__ __forceinline__ void begin_product(float (&sums)[16][4], const std::uint32_t (&left)[4],
                                              std::uint64_t right) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, "
        "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, "
        "%36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, "
        "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, 1, 1, "
        "1, 0;"
        : GPUTEXT_SIXTEEN_SUMS("+f", sums, 0), GPUTEXT_SIXTEEN_SUMS("+f", sums, 4),
          GPUTEXT_SIXTEEN_SUMS("+f", sums, 8), GPUTEXT_SIXTEEN_SUMS("+f", sums, 12)
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right));
}

#undef GPUTEXT_FOUR_SUMS
#undef GPUTEXT_SIXTEEN_SUMS
#undef GPUTEXT_GROUP_SUMS
#undef GPUTEXT_GROUP_PRODUCT

__device__ inline void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void end_of_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until all but the last `Ahead` groups of products are done.
template <int Ahead>
__device__ inline void wait_for_products() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Ahead) : "memory");
}

#endif

}  // namespace gputext::gpu
