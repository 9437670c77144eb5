// kernels/documents/detail/piece_hash.cuh - the polynomial hash of pieces on the device
//
// As in cpp/documents/ctph.cpp, but that a byte counts from 0 while prefixes are added up; pieces
// add what the 1 of each byte gives, so that bytes outside a document are just zeros.

#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>

namespace gputext::gpu {

inline constexpr std::uint32_t kPieceMultiplier = 0x01000193;

__host__ __device__ constexpr std::uint32_t constant_power(std::uint32_t exponent) {
    std::uint32_t power = 1;
    std::uint32_t base = kPieceMultiplier;
    for (; exponent != 0; exponent >>= 1, base *= base)
        if (exponent & 1) power *= base;
    return power;
}

/// Powers of the multiplier, and sums of the powers below, by the bytes of the exponent.
struct PowerTables {
    std::uint32_t powers[4][256];
    std::uint32_t sums[4][256];
};

constexpr PowerTables make_power_tables() {
    PowerTables tables{};
    std::uint32_t base = kPieceMultiplier;
    std::uint32_t sum = 1;  // of the powers below one step
    for (int t = 0; t < 4; ++t) {
        tables.powers[t][0] = 1;
        for (int i = 1; i < 256; ++i) {
            tables.powers[t][i] = tables.powers[t][i - 1] * base;
            tables.sums[t][i] = tables.sums[t][i - 1] * base + sum;
        }
        sum = tables.sums[t][255] * base + sum;
        base *= tables.powers[t][255];
    }
    return tables;
}

static __device__ const PowerTables power_tables = make_power_tables();

__device__ inline std::uint32_t power_of(std::uint32_t exponent) {
    std::uint32_t power = power_tables.powers[0][exponent & 255];
    for (int t = 1; t < 4 && (exponent >>= 8) != 0; ++t)
        power *= power_tables.powers[t][exponent & 255];
    return power;
}

/// Sum of all powers with smaller exponents.
__device__ inline std::uint32_t sum_of_powers(std::uint32_t exponent) {
    std::uint32_t sum = 0;
    for (int t = 3; t >= 0; --t) {
        const std::uint32_t digit = exponent >> 8 * t & 255;
        sum = sum * power_tables.powers[t][digit] + power_tables.sums[t][digit];
    }
    return sum;
}

/// Prefix hashes over the lanes of a warp, each of which hashed `Bytes` bytes: up to and with the
/// lane's own.
template <std::uint32_t Bytes>
__device__ std::uint32_t scan_hashes(std::uint32_t hash, unsigned lane) {
    const auto add = [&](unsigned distance, std::uint32_t power) {
        const std::uint32_t before = __shfl_up_sync(~0u, hash, distance);
        if (lane >= distance) hash += before * power;
    };
    constexpr std::uint32_t powers[] = {constant_power(Bytes), constant_power(2 * Bytes),
                                        constant_power(4 * Bytes), constant_power(8 * Bytes),
                                        constant_power(16 * Bytes)};
    add(1, powers[0]);
    add(2, powers[1]);
    add(4, powers[2]);
    add(8, powers[3]);
    add(16, powers[4]);
    return hash;
}

}  // namespace gputext::gpu
