// cpp/documents/detail/bit_parallel.hpp - bit-parallel Levenshtein: one block of a column, and its
// step to the next column
//
// Source: G. Myers 1999; the block form with a carry of -1, 0, +1 is Hyyro's of 2003.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace gputext {

inline constexpr std::size_t kBlockRows = 64;

/// Differences between neighboring cells of one column in one block of 64 rows.
struct Block {
    std::uint64_t up = ~std::uint64_t{0};  // bit r: the cell of row r is one more than that above
    std::uint64_t down = 0;                // bit r: it is one less
};

/// The difference along a row between two neighboring columns: +1, -1, or 0 when neither is set.
struct Carry {
    std::uint64_t up = 1;
    std::uint64_t down = 0;

    std::ptrdiff_t value() const {
        return static_cast<std::ptrdiff_t>(up) - static_cast<std::ptrdiff_t>(down);
    }
};

/// Moves a block one column on. `equal` has a bit for each row whose symbol is the column's. `in`
/// and the result are the differences along the row above the block and along its last row.
inline Carry advance(Block& block, std::uint64_t equal, Carry in) {
    const std::uint64_t vertical = equal | block.down;
    equal |= in.down;
    const std::uint64_t horizontal = (((equal & block.up) + block.up) ^ block.up) | equal;
    std::uint64_t right_up = block.down | ~(horizontal | block.up);
    std::uint64_t right_down = block.up & horizontal;
    const Carry out{right_up >> 63, right_down >> 63};
    right_up = right_up << 1 | in.up;
    right_down = right_down << 1 | in.down;
    block.up = right_down | ~(vertical | right_up);
    block.down = right_up & vertical;
    return out;
}

/// Sum of the differences that `mask` selects.
inline int rise(const Block& block, std::uint64_t mask) {
    return std::popcount(block.up & mask) - std::popcount(block.down & mask);
}

/// The rows of the last block that lie beyond `rows` rows.
inline std::uint64_t rows_beyond(std::size_t rows) {
    const std::size_t used = rows % kBlockRows;
    return used == 0 ? 0 : ~std::uint64_t{0} << used;
}

}  // namespace gputext
