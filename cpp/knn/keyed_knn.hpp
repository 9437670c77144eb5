// cpp/knn/keyed_knn.hpp - exact k nearest neighbors among the items of the query's own key

#pragma once

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/knn/neighbors.hpp"

namespace gputext {

/// The neighbors of all queries among the items whose key equals theirs: to the bit what knn()
/// would answer if it left out all other pairs. `excluded` leaves out pairs within a key, as it
/// does for knn(). Without keys it is knn().
/// Time: groups of few pairs take an exact distance a pair; large ones are searched as knn() does.
/// Memory: that of group_by_key(); within memory_limit the rows of groups that are copied to be
/// searched, and what knn() takes for them; within answer_limit the neighbors.
/// Errors: those of knn(), and invalid_argument for keys that are not as many as the rows.
Result<Neighbors> keyed_knn(const KnnParameters& parameters, const Vectors& queries,
                             const Vectors& items, const MatchKeys& match, const RowKeys& excluded,
                             Execution& execution);

}  // namespace gputext
