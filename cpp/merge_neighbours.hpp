// cpp/merge_neighbours.hpp - the nearest items of parts of a collection become those of all of it

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/execution.hpp"
#include "cpp/knn.hpp"
#include "cpp/status.hpp"

namespace gputext {

/// Of the same queries in each part. first_items: what an item's number in a part counts from; they
/// ascend. The answer has the k nearest of all by distance and then by number, which are those of a
/// search in the whole collection where each part has its own k nearest; its counts are the parts'
/// sums. O(neighbours * parts) time. Error: cancelled.
Status merge_neighbours(std::span<const Neighbours> parts,
                        std::span<const std::uint32_t> first_items, std::size_t k,
                        Execution& execution, Neighbours& answer);

}  // namespace gputext
