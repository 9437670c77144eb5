// cpp/bits/detail/bit_tiles.hpp - rows of bits side by side, and which of them have many ones in
// common with one

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"

namespace gputext {

/// A place that was found, and its ones in common.
struct CommonOnes {
    std::uint32_t place;
    std::uint32_t common;
};

/// Rows by place, eight in a tile: the first words of all eight, then the second ones, and so on.
class BitTiles {
public:
    static constexpr std::size_t tile_places = 8;

    /// Copies the rows of these numbers; kNoRow is a row of zeros. Errors: cancelled; out_of_memory.
    Status set(const Vectors& bits, std::span<const std::uint32_t> numbers, Execution& execution);

    /// Words of 64 bits of a row.
    std::size_t words() const { return words_; }
    /// Writes the places from `begin` to `end`, which are of whole tiles, that have at least so many
    /// ones in common with the row, in ascending order; `found` has room for all. How many they are.
    std::size_t find(const std::uint64_t* row, std::size_t begin, std::size_t end,
                     std::uint32_t least, Simd simd, CommonOnes* found) const;

private:
    std::size_t words_ = 0;
    std::vector<std::uint64_t> tiles_;
};

/// The words of a row of bits, as BitTiles::find() takes them: there are words_of_bits() of them.
void copy_row(const Vectors& bits, std::size_t row, std::uint64_t* words);
inline std::size_t words_of_bits(std::size_t bits) {
    return (bits + 63) / 64;
}

}  // namespace gputext
