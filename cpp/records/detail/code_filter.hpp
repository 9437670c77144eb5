// cpp/records/detail/code_filter.hpp - which of many records may have enough in common with one, by
// codes of their values

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/records/detail/pair_bounds.hpp"

namespace gputext {

/// Records that are looked at together.
inline constexpr std::size_t kFilterLanes = 16;

/// A field of one record, and the codes of the others in it.
struct Column {
    CodeQuery query;
    const std::uint32_t* codes;
    const PairBounds* bounds;
};

struct ChosenPlace {
    std::uint32_t place;
    std::int32_t sum;
};

/// Appends the places, of `count`, where the columns' sum is at least `least`. Reads up to
/// kFilterLanes codes more.
using CodeFilter = void (*)(std::span<const Column> columns, std::size_t count, std::int32_t least,
                            std::vector<ChosenPlace>& chosen);

/// That for this processor.
CodeFilter best_code_filter();

/// The largest number of CodeQuery's parts that is at most the weight, as far as sums reach.
std::int32_t parts_below(double weight);

}  // namespace gputext
