// cpp/terms/keyed_knn.hpp - exact k nearest texts among the items of the query's own key

#pragma once

#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/terms/knn.hpp"

namespace gputext {

/// The neighbors of all queries among the items whose key equals theirs: to the bit what
/// term_knn() would answer if it left out all other pairs. The factors are those of all items,
/// whatever their keys. `excluded` leaves out pairs within a key, as it does for term_knn().
/// Without keys it is term_knn(). Time and memory as keyed_knn(), and 8 bytes an item. Errors:
/// those of term_knn(), and invalid_argument for keys that are not as many as the rows.
Result<Neighbors> keyed_term_knn(const TermKnnParameters& parameters,
                                  std::span<const double> factors, const Vectors& queries,
                                  const Vectors& items, const MatchKeys& match,
                                  const RowKeys& excluded, Execution& execution);

}  // namespace gputext
