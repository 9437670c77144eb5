// kernels/trie/detail/xbw_lookup.cuh - looks a word up in a dictionary of
// cpp/trie/detail/xbw_layout.hpp
//
// Algorithm 2 of the paper (2016), one thread a word: a step of three reads for each byte, of which
// that of a superblock is one vector.

#pragma once

#include <cstdint>

#include "cpp/trie/detail/xbw_layout.hpp"
#include "kernels/trie/detail/device_words.cuh"

namespace gputext::gpu {

/// kXbwBlockValues, and behind them 16 of kXbwClassBegins.
inline constexpr std::uint32_t kXbwValues = 1u << kXbwBlockBits;
inline constexpr std::uint32_t kXbwTable = kXbwValues + 16;

/// Pointers to the parts of an image on a device.
struct XbwDictionary {
    const std::uint8_t* symbol_of = nullptr;  // of each byte
    const std::uint16_t* table = nullptr;     // of kXbwTable numbers
    const XbwCell* cells = nullptr;
    const XbwSuperblock* superblocks = nullptr;
    const std::uint32_t* payload = nullptr;
    const XbwLine* ends = nullptr;
    const std::uint32_t* codes = nullptr;
    std::uint32_t words = 0;
    std::uint32_t symbols = 0, row_cells = 0, code_bits = 0;
};

/// Looks up one word.
class XbwLookup {
public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    /// `symbol_of` and `table` are the dictionary's, or copies.
    __host__ __device__ XbwLookup(const XbwDictionary& dictionary, const std::uint8_t* symbol_of,
                                  const std::uint16_t* table)
        : dictionary_(dictionary), symbol_of_(symbol_of), values_(table) {}

    /// The code of the word, or kNone. The dictionary is not empty. O(length).
    __host__ __device__ std::uint32_t code(const std::uint8_t* word, std::uint32_t length) const {
        ByteReader bytes;
        std::uint32_t node = 0;
        for (std::uint32_t at = 0; at < length; ++at) {
            const std::uint32_t symbol = symbol_of_[bytes[word + at]];
            if (symbol >= dictionary_.symbols) return kNone;
            node = child(node, symbol);
            if (node == kNone) return kNone;
        }
        return code_in(node);
    }

private:
    __host__ __device__ static std::uint32_t bits_set(std::uint32_t bits) {
#ifdef __CUDA_ARCH__
        return static_cast<std::uint32_t>(__popc(bits));
#else
        return static_cast<std::uint32_t>(__builtin_popcount(bits));
#endif
    }
    /// As xbw_sum().
    __host__ __device__ static std::uint32_t sum_of(std::uint64_t numbers) {
        constexpr std::uint64_t lower = 0x0f0f0f0f0f0f0f0f;
        const std::uint64_t pairs = (numbers & lower) + (numbers >> 4 & lower);
        return static_cast<std::uint32_t>(pairs * 0x0101010101010101 >> 56);
    }
    /// As xbw_widths().
    __host__ __device__ static std::uint64_t widths_of(std::uint64_t classes) {
        constexpr std::uint64_t lowest = 0x1111111111111111;
        const std::uint64_t upper = classes >> 3 & lowest;
        const std::uint64_t folded = classes ^ upper * 15;
        const std::uint64_t m0 = folded & lowest, m1 = folded >> 1 & lowest,
                            m2 = folded >> 2 & lowest;
        const std::uint64_t m01 = m0 & m1;
        return 4 * m0 + 7 * m1 + 11 * m2 - 2 * m01 - 3 * (m0 & m2) - 5 * (m1 & m2) + (m01 & m2);
    }
    /// The lowest `count` bits, at most 32, from a bit on.
    __host__ __device__ static std::uint32_t bits_at(const std::uint32_t* from, std::uint64_t bit,
                                                     std::uint32_t count) {
        const std::uint32_t* const at = from + bit / 32;
        const auto shift = static_cast<std::uint32_t>(bit % 32);
        std::uint32_t bits = at[0] >> shift;
        if (shift + count > 32) bits |= at[1] << (32 - shift);
        return count < 32 ? bits & ((1u << count) - 1) : bits;
    }
    __host__ __device__ XbwSuperblock superblock(std::uint32_t number) const {
#ifdef __CUDA_ARCH__
        const uint4 vector =
            __ldg(reinterpret_cast<const uint4*>(&dictionary_.superblocks[number]));
        return {vector.x, vector.y, vector.z | std::uint64_t{vector.w} << 32};
#else
        return dictionary_.superblocks[number];
#endif
    }
    __host__ __device__ XbwCell cell(std::uint32_t superblock, std::uint32_t symbol) const {
        const XbwCell* const at =
            dictionary_.cells + std::uint64_t{superblock} * dictionary_.row_cells + symbol / 32;
#ifdef __CUDA_ARCH__
        const uint2 vector = __ldg(reinterpret_cast<const uint2*>(at));
        return {vector.x, vector.y};
#else
        return *at;
#endif
    }

    __host__ __device__ std::uint32_t child(std::uint32_t node, std::uint32_t symbol) const {
        constexpr std::uint32_t kSuperblock = kXbwSuperblockBits, kBlock = kXbwBlockBits;
        const std::uint32_t number = node / kSuperblock;
        const XbwCell own = cell(number, symbol);
        const std::uint32_t bit = 1u << symbol % 32;
        if ((own.bits & bit) == 0) return kNone;
        const XbwSuperblock stored = superblock(own.base + bits_set(own.bits & (bit - 1)));
        const std::uint32_t in_superblock = node - number * kSuperblock;
        const std::uint32_t v = in_superblock / kBlock, i = in_superblock - v * kBlock;
        const auto k = static_cast<std::uint32_t>(stored.classes >> 4 * v) & 15;
        if (k == 0) return kNone;
        const std::uint64_t before = stored.classes & ((std::uint64_t{1} << 4 * v) - 1);
        // Computed: a table would be another read.
        const std::uint32_t width =
            static_cast<std::uint32_t>(widths_of(stored.classes) >> 4 * v) & 15;
        const std::uint32_t value = bits_at(
            dictionary_.payload, std::uint64_t{stored.payload} + sum_of(widths_of(before)), width);
        const std::uint32_t block = values_[values_[kXbwValues + k] + value];
        if ((block >> i & 1) == 0) return kNone;
        return stored.child + sum_of(before) + bits_set(block & ((1u << i) - 1));
    }

    __host__ __device__ std::uint32_t code_in(std::uint32_t node) const {
        const std::uint32_t number = node / kXbwLineBits, i = node - number * kXbwLineBits;
        const XbwLine line = dictionary_.ends[number];
        std::uint32_t rank = line.before, own = 0;
        for (std::uint32_t j = 0; j < 7; ++j) {
            const std::uint32_t below = j < i / 32 ? ~0u : j == i / 32 ? (1u << i % 32) - 1 : 0u;
            rank += bits_set(line.bits[j] & below);
            if (j == i / 32) own = line.bits[j];
        }
        if ((own >> i % 32 & 1) == 0) return kNone;
        const std::uint32_t bits = dictionary_.code_bits;
        return bits == 0 ? 0 : bits_at(dictionary_.codes, std::uint64_t{rank} * bits, bits);
    }

    const XbwDictionary& dictionary_;
    const std::uint8_t* symbol_of_;
    const std::uint16_t* values_;
};

}  // namespace gputext::gpu
