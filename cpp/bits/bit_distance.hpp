// cpp/bits/bit_distance.hpp - distances of two rows of bits, to the bit
//
// a and b are rows of as many bits; |x| is the number of ones of x.
//
// hamming   |a xor b|, the places where they differ: |a| + |b| - 2 |a and b|.
// jaccard   1 - |a and b| / |a or b| in IEEE 754's binary64, and 1 where they have no one in common.
//
// Both follow from the same three counts, and fall with |a and b|. They have the values of
// pgvector's operators <~> and <%>.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cpp/base/vectors.hpp"

namespace gputext {

enum class BitMetric : std::uint8_t { hamming, jaccard };

/// Of rows with so many ones, of which so many are common.
inline double bit_distance(BitMetric metric, std::size_t a, std::size_t b, std::size_t common) {
    if (metric == BitMetric::hamming) return static_cast<double>(a + b - 2 * common);
    if (common == 0) return 1;
    return 1 - static_cast<double>(common) / static_cast<double>(a + b - common);
}

/// No rows have so many ones in common.
inline constexpr std::size_t kTooMany = SIZE_MAX;

/// The fewest ones in common with which rows of so many ones are within the limit, which is no NaN;
/// kTooMany where they never are.
inline std::size_t least_common(BitMetric metric, std::size_t a, std::size_t b, double limit) {
    const std::size_t most = std::min(a, b);
    if (!(bit_distance(metric, a, b, most) <= limit)) return kTooMany;
    const auto ones = static_cast<double>(a + b);
    // About: rounding is mended below.
    const double about =
        metric == BitMetric::hamming ? (ones - limit) / 2 : ones * (1 - limit) / (2 - limit);
    std::size_t least = limit < ones && about > 0
                            ? std::min(most, static_cast<std::size_t>(about))
                            : 0;
    if (metric == BitMetric::jaccard && limit >= 1) least = 0;
    while (least > 0 && bit_distance(metric, a, b, least - 1) <= limit) --least;
    while (!(bit_distance(metric, a, b, least) <= limit)) ++least;
    return least;
}

/// Of two rows of as many bits each: their ones in common, the ones of one, and the distance.
/// O(bits).
std::size_t common_ones(const Vectors& a, std::size_t row, const Vectors& b, std::size_t other_row);
inline std::size_t count_ones(const Vectors& bits, std::size_t row) {
    return common_ones(bits, row, bits, row);
}
double row_distance(BitMetric metric, const Vectors& a, std::size_t row, const Vectors& b,
                    std::size_t other_row);

}  // namespace gputext
