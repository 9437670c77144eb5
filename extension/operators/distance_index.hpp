// extension/operators/distance_index.hpp - what an index that returns the nearest rows first is of:
// its table, the vectors that it has of the rows, and the metric of its operator
//
// pgvector's access methods (hnsw, ivfflat) and those that other extensions provide for pgvector's
// types have an operator class whose ordering operator is one of pgvector's distances. Nothing of
// the access method itself is looked at.

#pragma once

#include "extension/base/postgres.hpp"

#include "cpp/knn/distance.hpp"
#include "extension/rows/vector_type.hpp"

namespace gputext {

/// Strings are in the memory context that was the current one, and name what they name where the
/// search_path is the same as then.
struct DistanceIndex {
    Oid index, table;
    // Whom the queries must run as: the table's owner, where the index's expression or condition
    // calls functions that are neither PostgreSQL's nor pgvector's; else InvalidOid, for the caller.
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

}  // namespace gputext
