// kernels/documents/detail/bit_planes.cuh - signatures as bit planes, and their Levenshtein
// distance in one thread
//
// A letter has six bits; plane p of a signature has bit i set when bit p of letter i is. The rows
// that equal a letter are then an AND of six planes or their complements: six operations a word,
// but no table of matches, so that one thread compares one pair out of its registers.

#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace gputext::gpu {

inline constexpr unsigned kPlanes = 6;
inline constexpr unsigned kPlaneWords = 4;                   // of 32 letters
inline constexpr unsigned kPlaneLetters = 32 * kPlaneWords;  // of one block
inline constexpr unsigned kMostPlaneBlocks = 8;              // of Ctph::max_length letters

/// 128 letters of a signature; those beyond its end are 0.
struct alignas(16) PlaneBlock {
    std::uint32_t words[kPlanes][kPlaneWords];
};

/// Blocks of planes that a signature takes.
__host__ __device__ constexpr unsigned plane_blocks(unsigned length) {
    return (length + kPlaneLetters - 1) / kPlaneLetters;
}

/// Value 0..63 of a letter of kSignatureAlphabet.
__device__ inline std::uint32_t letter_value(std::uint32_t letter) {
    if (letter >= 'a') return letter - 'a' + 26;
    if (letter >= 'A') return letter - 'A';
    if (letter >= '0') return letter - '0' + 52;
    return letter == '+' ? 62 : 63;
}

/// Additions of the words of one sum, which pass a carry on. The three have to follow each other
/// without other arithmetic that changes the carry.
__device__ inline std::uint32_t add_first(std::uint32_t a, std::uint32_t b) {
    std::uint32_t sum;
    asm volatile("add.cc.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}

__device__ inline std::uint32_t add_next(std::uint32_t a, std::uint32_t b) {
    std::uint32_t sum;
    asm volatile("addc.cc.u32 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}

/// One column of up to 128 rows of the bit-parallel matrix (cpp/documents/detail/bit_parallel.hpp,
/// in 32-bit words).
struct Column {
    std::uint32_t up[kPlaneWords];
    std::uint32_t down[kPlaneWords];

    __device__ void start() {
        for (unsigned w = 0; w < kPlaneWords; ++w) {
            up[w] = ~0u;
            down[w] = 0;
        }
    }

    /// Moves one column on; the differences along the row above come in, those along the last
    /// row come out. `masks` are the bits of the column's letter, each spread over a word.
    __device__ void advance(const PlaneBlock& pattern, const std::uint32_t (&masks)[kPlanes],
                            std::uint32_t& row_up, std::uint32_t& row_down) {
        std::uint32_t equal[kPlaneWords];
        std::uint32_t vertical[kPlaneWords];
        std::uint32_t sum[kPlaneWords];
#pragma unroll
        for (unsigned w = 0; w < kPlaneWords; ++w) {
            std::uint32_t differ = pattern.words[0][w] ^ masks[0];
#pragma unroll
            for (unsigned p = 1; p < kPlanes; ++p) differ |= pattern.words[p][w] ^ masks[p];
            vertical[w] = ~differ | down[w];
            equal[w] = ~differ;
        }
        equal[0] |= row_down;
        sum[0] = add_first(equal[0] & up[0], up[0]);
#pragma unroll
        for (unsigned w = 1; w < kPlaneWords; ++w) sum[w] = add_next(equal[w] & up[w], up[w]);
        std::uint32_t before_up = row_up << 31;
        std::uint32_t before_down = row_down << 31;
#pragma unroll
        for (unsigned w = 0; w < kPlaneWords; ++w) {
            const std::uint32_t horizontal = (sum[w] ^ up[w]) | equal[w];
            const std::uint32_t right_up = down[w] | ~(horizontal | up[w]);
            const std::uint32_t right_down = up[w] & horizontal;
            const std::uint32_t shifted_up = __funnelshift_l(before_up, right_up, 1);
            const std::uint32_t shifted_down = __funnelshift_l(before_down, right_down, 1);
            up[w] = shifted_down | ~(vertical[w] | shifted_up);
            down[w] = shifted_up & vertical[w];
            before_up = right_up;
            before_down = right_down;
        }
        row_up = before_up >> 31;
        row_down = before_down >> 31;
    }

    /// The last cell of `rows` rows less the one above the first.
    __device__ int rise(unsigned rows) const {
        int sum = 0;
#pragma unroll
        for (unsigned w = 0; w < kPlaneWords; ++w) {
            const unsigned used = rows <= 32 * w ? 0 : min(rows - 32 * w, 32u);
            const std::uint32_t mask = used == 32 ? ~0u : (1u << used) - 1;
            sum += __popc(up[w] & mask) - __popc(down[w] & mask);
        }
        return sum;
    }
};

/// Levenshtein distance of a pattern and a text. Long patterns take one pass over the text for each
/// block, and hand the differences along its last row to the next. About 76 operations for
/// each letter of the text and block of the pattern.
template <bool Long>
__device__ unsigned plane_distance(const PlaneBlock* pattern, unsigned pattern_length,
                                   const PlaneBlock* text, unsigned text_length) {
    constexpr unsigned kRowWords = Long ? kMostPlaneBlocks * kPlaneWords : 1;
    std::uint32_t rows_up[kRowWords];
    std::uint32_t rows_down[kRowWords];
    int distance = static_cast<int>(text_length);
    for (unsigned first = 0; first < pattern_length; first += kPlaneLetters) {
        const PlaneBlock block = pattern[first / kPlaneLetters];
        Column column;
        column.start();
        for (unsigned word = 0; 32 * word < text_length; ++word) {
            std::uint32_t bits[kPlanes];
#pragma unroll
            for (unsigned p = 0; p < kPlanes; ++p)
                bits[p] = __brev(text[word / kPlaneWords].words[p][word % kPlaneWords]);
            std::uint32_t above_up = ~0u;
            std::uint32_t above_down = 0;
            if (Long && first > 0) {
                above_up = rows_up[word];
                above_down = rows_down[word];
            }
            std::uint32_t last_up = 0;
            std::uint32_t last_down = 0;
            const unsigned letters = min(32u, text_length - 32 * word);
            for (unsigned i = 0; i < letters; ++i) {
                std::uint32_t masks[kPlanes];
#pragma unroll
                for (unsigned p = 0; p < kPlanes; ++p) {
                    masks[p] = static_cast<std::uint32_t>(static_cast<std::int32_t>(bits[p]) >> 31);
                    bits[p] += bits[p];
                }
                std::uint32_t row_up = Long ? above_up >> i & 1 : 1;
                std::uint32_t row_down = Long ? above_down >> i & 1 : 0;
                column.advance(block, masks, row_up, row_down);
                last_up |= row_up << i;
                last_down |= row_down << i;
            }
            if (Long) {
                rows_up[word] = last_up;
                rows_down[word] = last_down;
            }
        }
        distance += column.rise(min(kPlaneLetters, pattern_length - first));
        if (!Long) break;
    }
    return static_cast<unsigned>(distance);
}

}  // namespace gputext::gpu
