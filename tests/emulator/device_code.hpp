// tests/emulator/device_code.hpp - of CUDA C++ what kernels use and no header declares
//
// The build has it read before each .cu file, as nvcc reads its own.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "tests/emulator/warps.hpp"

#define __global__
#define __shared__ static
#define __launch_bounds__(...)

template <class Number>
constexpr Number min(Number a, Number b) {
    return b < a ? b : a;
}
template <class Number>
constexpr Number max(Number a, Number b) {
    return a < b ? b : a;
}

// ---- Numbers ----

inline int __popc(unsigned bits) {
    return __builtin_popcount(bits);
}
inline int __ffs(int bits) {
    return __builtin_ffs(bits);
}
inline int __ffsll(long long bits) {
    return __builtin_ffsll(bits);
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (shift & 31));
}
inline double __dadd_rn(double a, double b) {
    return a + b;
}
inline double __dsub_rn(double a, double b) {
    return a - b;
}
inline double __dmul_rn(double a, double b) {
    return a * b;
}
inline double __ddiv_rn(double a, double b) {
    return a / b;
}
inline float __fadd_rn(float a, float b) {
    return a + b;
}
inline float __fdiv_rn(float a, float b) {
    return a / b;
}
inline float __fmaf_rn(float a, float b, float c) {
    return std::fma(a, b, c);
}
inline float __uint2float_rn(unsigned number) {
    return static_cast<float>(number);
}
inline float __double2float_rn(double number) {
    return static_cast<float>(number);
}
inline double __longlong_as_double(long long bits) {
    double number;
    std::memcpy(&number, &bits, sizeof(number));
    return number;
}

// ---- Memory ----

template <class T>
T __ldg(const T* from) {
    return *from;
}
template <class Number>
Number atomicAdd(Number* to, Number value) {
    const Number before = *to;
    *to += value;
    return before;
}

inline std::size_t __cvta_generic_to_shared(const void* at) {
    return reinterpret_cast<std::size_t>(at);
}
template <class Number>
Number atomicMin(Number* to, Number value) {
    const Number before = *to;
    *to = min(*to, value);
    return before;
}

// ---- What the lanes of a warp do together ----

inline unsigned __ballot_sync(unsigned, bool is) {
    const bool* const all = gputext::emulator::values_of_warp("a ballot", is);
    unsigned lanes = 0;
    for (unsigned lane = 0; lane < gputext::emulator::kLanes; ++lane)
        lanes |= unsigned{all[lane]} << lane;
    return lanes;
}
inline bool __any_sync(unsigned mask, bool is) {
    return __ballot_sync(mask, is) != 0;
}
inline bool __all_sync(unsigned mask, bool is) {
    return __ballot_sync(mask, is) == ~0u;
}
inline void __syncwarp() {
    gputext::emulator::values_of_warp("a barrier", 0);
}
template <class T>
T __shfl_sync(unsigned, const T& value, unsigned lane) {
    return gputext::emulator::values_of_warp("a shuffle", value)[lane % gputext::emulator::kLanes];
}
template <class T>
T __shfl_xor_sync(unsigned mask, const T& value, unsigned other) {
    return __shfl_sync(mask, value, threadIdx.x ^ other);
}

namespace gputext::gpu {

/// kernels/base/bit_product.cuh has it in PTX: mma.m16n8k256, whose manual says which rows, columns
/// and words a lane has.
inline void multiply_bits(int (&sums)[4], const std::uint32_t (&a)[4], uint2 b,
                          const int (&start)[4]) {
    struct Fragments {
        std::uint32_t a[4];
        uint2 b;
    };
    const Fragments* const all =
        emulator::values_of_warp("a product", Fragments{{a[0], a[1], a[2], a[3]}, b});
    const unsigned group = threadIdx.x % emulator::kLanes / 4, four = threadIdx.x % 4;
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned half = i / 2;  // the row is `group`, or eight below it
        sums[i] = start[i];
        for (unsigned k = 0; k < 4; ++k) {
            const Fragments& of_row = all[4 * group + k];
            const Fragments& of_column = all[4 * (2 * four + i % 2) + k];
            sums[i] +=
                __popc(of_row.a[half] & of_column.b.x) + __popc(of_row.a[2 + half] & of_column.b.y);
        }
    }
}

}  // namespace gputext::gpu
