// extension/operators/distance_index.hpp - indexes that return the nearest rows first: what one is
// of (its table, the vectors that it has of the rows, the metric of its operator), and searches by
// it
//
// pgvector's access methods (hnsw, ivfflat) and those that other extensions provide for pgvector's
// types have an operator class whose ordering operator is one of pgvector's distances. Nothing of
// the access method itself is looked at.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "executor/spi.h"
#include "storage/itemptr.h"
}

#include "cpp/knn/distance.hpp"
#include "extension/types/vector_type.hpp"

namespace gputext {

/// Strings are in the memory context that was the current one, and name what they name where the
/// search_path is the same as then.
struct DistanceIndex {
    Oid index, table;
    // Whom the queries must run as: the table's owner, where the index's expression or condition
    // calls functions that are neither PostgreSQL's nor pgvector's; else InvalidOid, for the
    // caller.
    Oid evaluator;
    const char* name;    // of the index, quoted and with its schema
    Oid operand;         // the type of both sides of the operator
    VectorType vectors;  // that type
    Metric metric;
    const char* all_rows;  // a query: ctid and vector of each row that the index has
    const char* nearest;   // a query: ctids of the rows by their distance to $1, without a LIMIT
};

/// Locks the table and the index against changes of their definitions until the transaction ends.
/// Raises an error for what is no index, an index that is not valid, one of a partitioned table,
/// and one that is not ordered by a distance of vectors that is known.
DistanceIndex distance_index(Oid index);

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
