// cpp/knn/merge_neighbours.hpp - makes one answer of the neighbours found in parts of a search

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/knn/neighbours.hpp"

namespace gputext {

/// Merges the neighbours that each part found for the same queries. first_items: the number of a
/// part's first item, ascending. Keeps the k nearest by distance and then by number, as does a
/// search in the whole collection where each part has its own k nearest; its counts are the parts'
/// sums. O(neighbours * parts) time, on the execution's threads. Error: cancelled.
Status merge_neighbours(std::span<const Neighbours> parts,
                        std::span<const std::uint32_t> first_items, std::size_t k,
                        Execution& execution, Neighbours& answer);

/// Puts the neighbours that each part found for its own queries one behind the other; its counts
/// are the parts' sums. O(neighbours) time, on the execution's threads. Error: cancelled.
Status join_neighbours(std::span<const Neighbours> parts, Execution& execution, Neighbours& answer);

}  // namespace gputext
