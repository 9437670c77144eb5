// cpp/collect_neighbours.hpp - from the nearest classes of equal items to the answer

#pragma once

#include <cstddef>

#include "cpp/distinct_rows.hpp"
#include "cpp/execution.hpp"
#include "cpp/knn.hpp"
#include "cpp/nearest_lists.hpp"
#include "cpp/status.hpp"

namespace gputext {

/// Takes the nearest classes of each query, once all were added, and sets the answer's neighbours:
/// the k nearest items of these classes and, with include_ties, those as far as the k-th. Without
/// `distinct` each item is a class of its own. O(neighbours * log). Error: cancelled.
Status collect_neighbours(std::size_t k, bool include_ties, NearestLists& nearest,
                          const DistinctRows* distinct, const RowKeys& keys, Execution& execution,
                          Neighbours& answer);

}  // namespace gputext
