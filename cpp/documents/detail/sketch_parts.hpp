// cpp/documents/detail/sketch_parts.hpp - how the parts of a model are made of rates

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/documents/sketch_model.hpp"

namespace gputext {

/// The rates between which documents lie, of a bin.
struct RateRange {
    double least, most;
};

/// The bin of each cell, so that bins have about the same weight: the heaviest cell that is left
/// goes to the lightest bin (Graham 1969).
std::vector<std::uint16_t> balanced_bins(std::span<const double> weights, std::size_t bins);

/// Add the numbers of a part to those of a model. Bins of bigrams may get other numbers, so that
/// those whose ranges are about as wide come into a group.
void append_letters(std::span<const std::uint16_t> bins_of_cells, std::span<const RateRange> ranges,
                    std::vector<std::uint16_t>& numbers);
void append_grams(std::span<const std::uint16_t> bins_of_cells, std::span<const RateRange> ranges,
                  std::vector<std::uint16_t>& numbers);

}  // namespace gputext
