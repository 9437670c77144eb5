// cpp/documents/detail/shared_counts.hpp - sums of minima of the counts of a query and a sketch

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cpp/base/simd.hpp"

namespace gputext {

/// The largest counts that the codes of a sketch's bins of bigrams stand for; the last one has no
/// limit.
inline constexpr std::array<std::uint8_t, 16> kGramLevels = {0, 1,  2,  3,  4,  5,  6,  7,
                                                             8, 10, 12, 14, 17, 20, 24, 255};

struct SharedCounts {
    static constexpr std::size_t letters_size = 64;
    static constexpr std::size_t vector = 64;

    /// Sum of min(query[i], sketch[i]) for i < letters_size.
    std::uint32_t (*letters)(const std::uint8_t* query, const std::uint8_t* sketch);

    /// Sum of min(low[i], level of the lower half of sketch[i]) and min(high[i], level of the upper
    /// half) for i < size, a multiple of 4. `low` and `high` are readable up to a multiple of
    /// `vector`, with zeros from `size` on; of `sketch` nothing beyond `size` is read.
    std::uint32_t (*grams)(const std::uint8_t* low, const std::uint8_t* high,
                           const std::uint8_t* sketch, std::size_t size);
};
SharedCounts shared_counts(Simd simd);

}  // namespace gputext
