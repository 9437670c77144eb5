// cpp/knn/added_neighbors.hpp - an answer for items to which others were added

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/knn/neighbors.hpp"

namespace gputext {

/// Takes into an answer what was found for the same queries among items that were added, each at
/// its place in the order of all: before[n] of the others come before the n-th, whose number is
/// first + n in the answer. Keeps the k nearest. O(neighbors) time. Error: cancelled.
Status merge_added(const Neighbors& added, std::span<const std::uint32_t> before, std::size_t first,
                   std::size_t k, Stop stop, Neighbors& answer);

}  // namespace gputext
