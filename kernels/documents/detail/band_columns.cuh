// kernels/documents/detail/band_columns.cuh - bit-parallel columns of a Levenshtein matrix, spread
// over lanes
//
// A lane holds kWords * 64 rows of one column and moves them one column on a step. The lane below
// does the same one step later, so that one shuffle a step carries the difference between columns
// from row to row, and nothing waits for a carry across lanes. (Myers 1999; Hyyro 2003. The skew
// is a systolic array's.)

#pragma once

#include <cstdint>

#include "kernels/base/warp.cuh"

namespace gputext::gpu {

/// A document's symbols: bytes, or numbers of characters where the document is not narrow.
struct Symbols {
    const void* data;
    std::uint32_t count;
    std::uint32_t wide;

    __device__ std::uint32_t operator[](std::uint32_t i) const {
        return wide != 0 ? static_cast<const std::uint32_t*>(data)[i]
                         : static_cast<const std::uint8_t*>(data)[i];
    }
};

/// A symbol as 4-bit digits, which index the match tables, each in a byte: two digits for a byte,
/// eight for any character. The digit kNoSymbol in the first place matches no row.
template <int kDigits>
struct SymbolCode;

inline constexpr unsigned kNoSymbol = 16;
inline constexpr unsigned kDigitValues = 17;

template <>
struct SymbolCode<2> {
    std::uint16_t digits;

    static __device__ SymbolCode of(std::uint32_t symbol) {
        return {static_cast<std::uint16_t>((symbol & 0xf) | (symbol & 0xf0) << 4)};
    }
    static __device__ SymbolCode none() { return {kNoSymbol}; }
    __device__ std::uint32_t half(int) const { return digits; }
};

template <>
struct SymbolCode<8> {
    uint2 digits;

    static __device__ std::uint32_t spread(std::uint32_t half) {
        std::uint32_t x = (half | half << 8) & 0x00ff00ffu;
        return (x | x << 4) & 0x0f0f0f0fu;
    }
    static __device__ SymbolCode of(std::uint32_t symbol) {
        return {{spread(symbol & 0xffff), spread(symbol >> 16)}};
    }
    static __device__ SymbolCode none() { return {{kNoSymbol, 0}}; }
    __device__ std::uint32_t half(int i) const { return i == 0 ? digits.x : digits.y; }
};

/// Which rows of a lane hold a digit, for each digit of a symbol: the rows that hold the symbol are
/// the intersection. A lane has a bank pair of its own, so lookups never conflict.
template <int kDigits, int kWords>
struct MatchTables {
    static constexpr unsigned kRows = 64 * kWords;

    std::uint64_t rows[kDigits][kWords][kDigitValues][kWarp];

    /// Entry `i` of all that belong to a lane, for clearing.
    static constexpr unsigned kEntries = kDigits * kWords * kDigitValues;
    __device__ void clear(unsigned lane, unsigned i) { (&rows[0][0][0][0])[i * kWarp + lane] = 0; }

    /// Several lanes may add rows to one lane's tables.
    __device__ void add(unsigned lane, unsigned row, SymbolCode<kDigits> code) {
        for (int digit = 0; digit < kDigits; ++digit) {
            const unsigned value = code.half(digit / 4) >> 8 * (digit % 4) & 0xff;
            auto* words =
                reinterpret_cast<unsigned*>(&rows[digit][row / 64][value][lane]) + row / 32 % 2;
            atomicOr(words, 1u << row % 32);
        }
    }

    /// The lane's rows that hold the symbol, as 32-bit words.
    __device__ void match(unsigned lane, SymbolCode<kDigits> code,
                          std::uint32_t (&equal)[2 * kWords]) const {
#pragma unroll
        for (int digit = 0; digit < kDigits; ++digit) {
            // A table's row is 256 bytes, a lane's entry in it 8: the byte permutation is the sum.
            const unsigned offset =
                __byte_perm(code.half(digit / 4), lane * 8, 0x5504 | (digit % 4) << 4);
#pragma unroll
            for (int word = 0; word < kWords; ++word) {
                const auto* at = reinterpret_cast<const char*>(rows[digit][word]) + offset;
                const uint2 both = *reinterpret_cast<const uint2*>(at);
                equal[2 * word] = digit == 0 ? both.x : equal[2 * word] & both.x;
                equal[2 * word + 1] = digit == 0 ? both.y : equal[2 * word + 1] & both.y;
            }
        }
    }
};

/// The difference along a row between two neighboring columns, as a lane hands it down: the
/// highest bit for +1, the lowest for -1.
using RowStep = std::uint32_t;
inline constexpr RowStep kStepUp = 0x80000000u;

__device__ inline int value_of(RowStep step) {
    return static_cast<int>(step >> 31) - static_cast<int>(step & 1);
}

__device__ inline void add_words(const std::uint32_t (&a)[2], std::uint32_t (&sum)[2]) {
    const std::uint64_t total =
        (std::uint64_t{a[1]} << 32 | a[0]) + (std::uint64_t{sum[1]} << 32 | sum[0]);
    sum[0] = static_cast<std::uint32_t>(total);
    sum[1] = static_cast<std::uint32_t>(total >> 32);
}

__device__ inline void add_words(const std::uint32_t (&a)[4], std::uint32_t (&sum)[4]) {
    asm("add.cc.u32 %0, %0, %4;\n\t"
        "addc.cc.u32 %1, %1, %5;\n\t"
        "addc.cc.u32 %2, %2, %6;\n\t"
        "addc.u32 %3, %3, %7;"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
}

__device__ inline void add_words(const std::uint32_t (&a)[8], std::uint32_t (&sum)[8]) {
    asm("add.cc.u32 %0, %0, %8;\n\t"
        "addc.cc.u32 %1, %1, %9;\n\t"
        "addc.cc.u32 %2, %2, %10;\n\t"
        "addc.cc.u32 %3, %3, %11;\n\t"
        "addc.cc.u32 %4, %4, %12;\n\t"
        "addc.cc.u32 %5, %5, %13;\n\t"
        "addc.cc.u32 %6, %6, %14;\n\t"
        "addc.u32 %7, %7, %15;"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3]), "+r"(sum[4]), "+r"(sum[5]),
          "+r"(sum[6]), "+r"(sum[7])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]));
}

/// Differences between neighboring rows of one column, for the rows of one lane.
template <int kWords>
struct LaneRows {
    static constexpr int kParts = 2 * kWords;  // of 32 rows

    std::uint32_t up[kParts];    // bit r: the cell of row r is one more than that above
    std::uint32_t down[kParts];  // bit r: it is one less

    /// The column in which every row is one more than that above.
    __device__ void reset() {
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            up[i] = ~0u;
            down[i] = 0;
        }
    }

    /// One column on. `in` is the step along the row above; returns that along the last row. With
    /// no match and no step, a column fresh from reset() stays as it is and hands on no step.
    __device__ RowStep advance(std::uint32_t (&equal)[kParts], RowStep in) {
        std::uint32_t out_up, out_down;
        advance(equal, in, in & 1, out_up, out_down);
        return (out_up & kStepUp) | out_down >> 31;
    }

    /// Advances with the step in two numbers: +1 in the highest bit of `in_up`, -1 as an `in_down`
    /// of 1. The highest bits of what comes out are the step along the last row.
    __device__ void advance(std::uint32_t (&equal)[kParts], std::uint32_t in_up,
                            std::uint32_t in_down, std::uint32_t& out_up, std::uint32_t& out_down) {
        std::uint32_t vertical[kParts], horizontal[kParts], sum[kParts];
#pragma unroll
        for (int i = 0; i < kParts; ++i) vertical[i] = equal[i] | down[i];
        equal[0] |= in_down;
#pragma unroll
        for (int i = 0; i < kParts; ++i) sum[i] = equal[i] & up[i];
        add_words(up, sum);
        std::uint32_t right_up[kParts], right_down[kParts];
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            horizontal[i] = (sum[i] ^ up[i]) | equal[i];
            right_up[i] = down[i] | ~(horizontal[i] | up[i]);
            right_down[i] = up[i] & horizontal[i];
        }
#pragma unroll
        for (int i = 0; i < kParts; ++i) {
            const std::uint32_t above_up =
                __funnelshift_l(i == 0 ? in_up : right_up[i - 1], right_up[i], 1);
            const std::uint32_t above_down =
                i == 0 ? right_down[0] << 1 | in_down
                       : __funnelshift_l(right_down[i - 1], right_down[i], 1);
            up[i] = above_down | ~(vertical[i] | above_up);
            down[i] = above_up & vertical[i];
        }
        out_up = right_up[kParts - 1];
        out_down = right_down[kParts - 1];
    }

    /// The last row's value less that of the row above `first`; 0 for `first` beyond the rows.
    __device__ int rise_from(unsigned first) const {
        int rise = 0;
#pragma unroll
        for (unsigned i = 0; i < kParts; ++i) {
            const unsigned cut = first <= 32 * i ? 0 : min(first - 32 * i, 32u);
            const std::uint32_t mask = cut == 32 ? 0 : ~0u << cut;
            rise += __popc(up[i] & mask) - __popc(down[i] & mask);
        }
        return rise;
    }
};

}  // namespace gputext::gpu
