// kernels/trie/detail/device_words.cuh - words one behind the other on a device, and unaligned
// reads from them
//
// What these functions read is aligned: up to 15 bytes before and behind what is wanted, which the
// memory must have (kWordSlack).

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gputext::gpu {

/// Bytes that may be read behind the last one of an array whose first byte is aligned.
inline constexpr std::size_t kWordSlack = 16;

/// A view of some words: those of cpp/base/words.hpp, whose bytes lie `base` further back here.
struct DeviceWords {
    const std::uint8_t* bytes = nullptr;
    const std::uint64_t* begins = nullptr;  // one more than there are words
    std::uint64_t base = 0;
    std::uint32_t count = 0;

    __host__ __device__ const std::uint8_t* begin(std::size_t i) const {
        return bytes + (begins[i] - base);
    }
    __host__ __device__ std::uint64_t length(std::size_t i) const {
        return begins[i + 1] - begins[i];
    }
};

/// A word of 64 bits as it lies at `from`, which may be anywhere.
__host__ __device__ inline std::uint64_t load_eight(const std::uint8_t* from) {
#ifdef __CUDA_ARCH__
    const auto at = reinterpret_cast<std::uintptr_t>(from);
    const auto* const aligned = reinterpret_cast<const std::uint64_t*>(at & ~std::uintptr_t{7});
    const unsigned shift = static_cast<unsigned>(at & 7) * 8;
    const std::uint64_t low = aligned[0];
    if (shift == 0) return low;
    return low >> shift | aligned[1] << (64 - shift);
#else
    std::uint64_t eight;
    std::memcpy(&eight, from, sizeof eight);
    return eight;
#endif
}

/// The lowest `length` bytes of a number are kept, up to all eight.
__host__ __device__ inline std::uint64_t lowest_bytes(std::uint64_t number, std::uint64_t length) {
    return length >= 8 ? number
                       : number & ((std::uint64_t{1} << 8 * static_cast<unsigned>(length)) - 1);
}

/// The first eight of `length` bytes, zeros behind fewer.
__host__ __device__ inline std::uint64_t load_up_to_eight(const std::uint8_t* from,
                                                          std::uint64_t length) {
    return length == 0 ? 0 : lowest_bytes(load_eight(from), length);
}

__host__ __device__ inline std::uint64_t reversed_bytes(std::uint64_t number) {
#ifdef __CUDA_ARCH__
    const auto low = static_cast<unsigned>(number);
    const auto high = static_cast<unsigned>(number >> 32);
    return std::uint64_t{__byte_perm(low, 0, 0x0123)} << 32 | __byte_perm(high, 0, 0x0123);
#else
    return __builtin_bswap64(number);
#endif
}

/// Position of the lowest bit that is set in a number other than 0.
__host__ __device__ inline std::uint32_t lowest_bit(std::uint32_t number) {
#ifdef __CUDA_ARCH__
    return static_cast<std::uint32_t>(__ffs(static_cast<int>(number)) - 1);
#else
    return static_cast<std::uint32_t>(__builtin_ctz(number));
#endif
}

/// How many of the lowest bytes of a number that is not 0 are 0.
__host__ __device__ inline unsigned zero_bytes_below(std::uint64_t number) {
#ifdef __CUDA_ARCH__
    return static_cast<unsigned>(__ffsll(static_cast<long long>(number)) - 1) / 8;
#else
    return static_cast<unsigned>(__builtin_ctzll(number)) / 8;
#endif
}

/// And of the highest.
__host__ __device__ inline unsigned zero_bytes_above(std::uint64_t number) {
#ifdef __CUDA_ARCH__
    return static_cast<unsigned>(__clzll(static_cast<long long>(number))) / 8;
#else
    return static_cast<unsigned>(__builtin_clzll(number)) / 8;
#endif
}

/// How many of the first `size` bytes of both are equal, up to the first that are not.
__host__ __device__ inline std::uint32_t common_bytes(const std::uint8_t* a, const std::uint8_t* b,
                                                      std::uint32_t size) {
    for (std::uint32_t at = 0; at < size; at += 8) {
        const std::uint64_t different =
            lowest_bytes(load_eight(a + at) ^ load_eight(b + at), size - at);
        if (different != 0) return at + zero_bytes_below(different);
    }
    return size;
}

/// The first 16 bytes of a word, zeros behind a shorter one, in the order of the bytes.
struct WordKey {
    std::uint64_t high, low;

    __host__ __device__ bool operator==(const WordKey& other) const {
        return high == other.high && low == other.low;
    }
    __host__ __device__ bool operator<=(const WordKey& other) const {
        return high < other.high || (high == other.high && low <= other.low);
    }
};

__host__ __device__ inline WordKey key_of(const std::uint8_t* word, std::uint32_t length) {
    return {reversed_bytes(load_up_to_eight(word, length)),
            length <= 8 ? 0 : reversed_bytes(load_up_to_eight(word + 8, length - 8))};
}

/// Reads single bytes by aligned vectors of 16, the last of which it keeps.
class ByteReader {
public:
    __host__ __device__ std::uint8_t operator[](const std::uint8_t* at) {
#ifdef __CUDA_ARCH__
        const auto address = reinterpret_cast<std::uintptr_t>(at);
        if (address / 16 != block_) {
            block_ = address / 16;
            const uint4 vector = __ldg(reinterpret_cast<const uint4*>(block_ * 16));
            low_ = vector.x | std::uint64_t{vector.y} << 32;
            high_ = vector.z | std::uint64_t{vector.w} << 32;
        }
        const std::uint64_t half = (address & 8) != 0 ? high_ : low_;
        return static_cast<std::uint8_t>(half >> (address & 7) * 8);
#else
        return *at;
#endif
    }

private:
    std::uintptr_t block_ = 0;
    std::uint64_t low_ = 0, high_ = 0;
};

}  // namespace gputext::gpu
