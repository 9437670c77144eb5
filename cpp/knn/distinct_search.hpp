// cpp/knn/distinct_search.hpp - kNN adaptor: searches distinct rows, then expands duplicates
//
// A search that knows nothing of copies, as a device's, finds each of them as near as the others,
// and has to sort out which are the first. Here it is given the distinct rows alone, and its answer
// is expanded as that of cpp/knn/knn.cpp is: to the same neighbors.
//
// Keys forbid single members of classes, so that a class may rank as if its first members were not
// there. The search knows no keys: it is asked for m more classes than k, m being the most items
// that one key has. At most m classes hold an item of the query's key; of the k + m nearest by
// (distance, first member) so at least k are wholly allowed. Hence the k-th neighbor is no farther
// than the last of these classes. Of those at its very distance, a class that was cut off has only
// members behind the first member of each that was kept, and those that are wholly allowed are
// enough to fill what room the nearer ones leave: it has no neighbor.

#pragma once

#include <functional>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/knn.hpp"

namespace gputext {

/// A search as knn() is; its keys may be empty.
using KnnFunction =
    std::function<Result<Neighbors>(const KnnParameters& parameters, const Vectors& queries,
                                     const Vectors& items, const RowKeys& keys)>;

/// The answer of `search`, which is given the distinct items and, where they repeat themselves too,
/// the distinct queries. It is given all rows where they are sparse, and where one key has so many
/// items that k would have to be far larger.
/// Time, besides: O(elements), O(neighbors). Memory: the distinct rows once more if not all are
/// distinct, about 60 bytes a row, 40 bytes a neighbor.
/// Errors: those of the search, which names rows as given.
Result<Neighbors> search_distinct_rows(const KnnParameters& parameters, const Vectors& queries,
                                        const Vectors& items, const RowKeys& keys,
                                        const KnnFunction& search, Execution& execution);

/// Whether search_distinct_rows() is sooner done than the search alone on a GPU, by what a sample
/// of the items shows and by how many queries there are. O(1) rows are looked at. False if stopped.
bool distinct_rows_pay(const Vectors& queries, const Vectors& items, Execution& execution);

/// search_distinct_rows() where distinct_rows_pay(), else the search alone.
Result<Neighbors> search_distinct_if_it_pays(const KnnParameters& parameters,
                                              const Vectors& queries, const Vectors& items,
                                              const RowKeys& keys, const KnnFunction& search,
                                              Execution& execution);

}  // namespace gputext
