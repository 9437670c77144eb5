// kernels/embeddings/detail/training_random.cuh - random numbers of
// cpp/base/counter_random.hpp on a device

#pragma once

#include <cstdint>

namespace gputext::gpu {

__device__ inline std::uint64_t mix_bits(std::uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9;
    x ^= x >> 27;
    x *= 0x94d049bb133111eb;
    return x ^ x >> 31;
}

__device__ inline std::uint64_t random_bits(std::uint64_t key, std::uint64_t place) {
    return mix_bits(key + (place + 1) * 0x9e3779b97f4a7c15);
}

__device__ inline std::uint32_t random_below(std::uint32_t bits, std::uint32_t count) {
    return __umulhi(bits, count);
}

}  // namespace gputext::gpu
