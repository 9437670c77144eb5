// cpp/knn/class_expansion.hpp - expands nearest classes of equal items into nearest items
//
// A search looks at each class once; which of its members are neighbours, in which order, and where
// the k-th is reached, is found here, for the CPU's search and for those of devices.

#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/base/status.hpp"
#include "cpp/knn/distinct_rows.hpp"
#include "cpp/knn/nearest_lists.hpp"
#include "cpp/knn/neighbours.hpp"

namespace gputext {

/// Appends a query's nearest classes, by distance; those at one distance in any order. Called once
/// a query, on any thread.
using NearestClasses = std::function<Status(std::size_t query, std::vector<Candidate>& nearest)>;

/// Fills in the neighbours of all queries: of parameters k and include_ties count, and the keys.
/// The classes given for a query must hold those neighbours. Without `distinct` each item is a
/// class of its own, given in order. O(neighbours), and sorting where several classes are at one
/// distance. Takes kBytesOfNeighbour for each neighbour from the budget. Errors: cancelled,
/// memory_limit, and those of `classes_of`.
Status expand_classes(const KnnParameters& parameters, std::size_t queries, const RowKeys& keys,
                      const DistinctRows* distinct, const NearestClasses& classes_of,
                      MemoryBudget& budget, Execution& execution, Neighbours& answer);

}  // namespace gputext
