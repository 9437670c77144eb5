// cpp/base/counter_random.hpp - random numbers as a function of where they are used
//
// Each number is a function of the seed and of the place that asks for it, so that any part of a
// computation draws the same ones wherever and in whatever order it runs. The mixing function
// is the finaliser of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
// generators, 2014).

#pragma once

#include <cstdint>

#include "cpp/base/host_device.hpp"

namespace gputext {

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

GPUTEXT_HOST_DEVICE constexpr std::uint64_t mix_bits(std::uint64_t x) {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9;
    x ^= x >> 27;
    x *= 0x94d049bb133111eb;
    return x ^ x >> 31;
}

/// A key for a sequence of numbers; each use of random numbers has a key of its own.
GPUTEXT_HOST_DEVICE constexpr std::uint64_t random_key(std::uint64_t seed, std::uint64_t use,
                                                       std::uint64_t of) {
    return mix_bits(mix_bits(mix_bits(seed + kGolden) + use + kGolden) + of + kGolden);
}

/// The number at a place.
GPUTEXT_HOST_DEVICE constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t place) {
    return mix_bits(key + (place + 1) * kGolden);
}

/// One of `count` numbers from 0, of 64 random bits: the upper half of their product.
constexpr std::uint64_t wide_random_below(std::uint64_t bits, std::uint64_t count) {
    __extension__ using Product = unsigned __int128;
    return static_cast<std::uint64_t>(static_cast<Product>(bits) * count >> 64);
}

/// One of `count` numbers from 0, of 32 random bits.
GPUTEXT_HOST_DEVICE constexpr std::uint32_t random_below(std::uint32_t bits, std::uint32_t count) {
    return upper_product(bits, count);
}

}  // namespace gputext
