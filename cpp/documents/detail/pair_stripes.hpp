// cpp/documents/detail/pair_stripes.hpp - which part of a search the pairs of a row belong to
//
// Rows in the order of a join are cut into stripes of neighbours, and the stripes are dealt out to
// the parts, back and forth, since the first rows of a triangle have more pairs than the last ones.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/stop.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"

namespace gputext {

/// Rows of a stripe in a join of signatures: whole tiles of a device
/// (kernels/documents/detail/letter_product.hpp). Each list of signatures that are comparable, by
/// ascending block size, begins a stripe.
inline constexpr std::uint32_t kSignatureStripe = 512;

/// Whether the part has the pairs of the rows of a stripe.
inline bool has_stripe(const PairPart& part, std::uint64_t stripe) {
    const std::uint64_t turn = stripe / part.count;
    const std::uint64_t place = stripe % part.count;
    return (turn % 2 == 0 ? place : part.count - 1 - place) == part.index;
}

/// The documents, by 0 or 1, that are rows of the part among documents of these lengths: in order
/// of length, then of number. None at all for the only part, whose rows are all of them. Stripes
/// are whole row blocks of a device's tiles, so that these belong to one part, and short enough to
/// be many. False if stopped. O(documents).
bool rows_of_part(std::span<const std::uint32_t> lengths, const PairPart& part, Stop stop,
                  std::vector<std::uint8_t>& rows);

}  // namespace gputext
