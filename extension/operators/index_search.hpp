// extension/operators/index_search.hpp - finds the nearest rows of a vector by an index, as a
// statement of the session would

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "executor/spi.h"
#include "storage/itemptr.h"
}

#include "extension/operators/distance_index.hpp"

namespace gputext {

/// One plan for all queries: with the caller's rights, snapshot and settings, but that the planner
/// sees no other index of the table, and neither a sequential scan nor parallel workers. Lives
/// within a connection to SPI, which it makes and ends.
class IndexSearch {
public:
    /// Settings are back and the planner sees all indexes again after end(), or when the context is
    /// reset, as after an error.
    IndexSearch(const DistanceIndex& index, std::uint32_t k, MemoryContext context);

    /// Writes the places of at most k rows, in the order in which they come, to `rows`, and returns
    /// how many they are. `query` is a value of the index's operand. Raises an error where the plan
    /// does not take the rows from the index.
    std::uint32_t nearest(Datum query, ItemPointerData* rows);

    void end();

private:
    const DistanceIndex& index_;
    std::uint32_t k_;
    int settings_;  // PostgreSQL's level of settings
    const char* sql_;
    SPIPlanPtr plan_;
};

}  // namespace gputext
