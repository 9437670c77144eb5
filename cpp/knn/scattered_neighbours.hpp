// cpp/knn/scattered_neighbours.hpp - one answer from neighbours that were found for some queries at
// a time

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/knn/neighbours.hpp"

namespace gputext {

/// Answers for lists of queries. A query is in one list at most; one that is in none has no
/// neighbours. Used by one thread.
class ScatteredNeighbours {
public:
    /// Neighbours n of `found` are those of query queries[n].
    void add(std::vector<std::uint32_t> queries, Neighbours found);

    /// Makes the answer for all queries, and gives up the lists. The counts are the lists' sums.
    /// O(queries + neighbours) time, on the execution's threads; twice the neighbours' memory until
    /// it returns. Error: cancelled.
    Status put_together(std::size_t queries, Execution& execution, Neighbours& answer);

private:
    struct Piece {
        std::vector<std::uint32_t> queries;
        Neighbours found;
    };

    std::vector<Piece> pieces_;
};

}  // namespace gputext
