// cpp/bits/ones_order.hpp - rows of bits in order of how many ones they have

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"

namespace gputext {

/// The number of a place that no row has.
inline constexpr std::uint32_t kNoRow = UINT32_MAX;

/// Neighboring places of rows with as many ones, in whole tiles.
struct OnesGroup {
    std::uint32_t begin, end;
    std::uint32_t ones;
};

/// Places of rows: groups ascend by their ones, and rows of a group by their numbers.
struct OnesOrder {
    std::vector<std::uint32_t> numbers;  // of the rows; kNoRow behind the last one of a group
    std::vector<OnesGroup> groups;

    std::size_t places() const { return numbers.size(); }
    /// The group with that many ones, or the first one with more.
    std::size_t group_of(std::size_t ones) const;
};

/// Orders the rows that `chosen` names, which ascend, in tiles of so many places. O(rows * bits), on the
/// execution's threads. Error: cancelled.
Status order_by_ones(const Vectors& bits, std::span<const std::uint32_t> chosen, std::size_t tile,
                     Execution& execution, OnesOrder& order);

}  // namespace gputext
