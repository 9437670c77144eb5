// extension/planner/distance_operators.hpp - recognises the operators that are distances of vectors

#pragma once

#include "extension/base/postgres.hpp"

#include <optional>

#include "cpp/knn/distance.hpp"
#include "extension/types/vector_type.hpp"

namespace gputext {

struct DistanceOperator {
    Oid function;
    Metric metric;
    VectorType type;  // of both operands
    /// Whether its values are those that cpp/knn/distance.hpp defines, to the bit: gputext's own.
    /// pgvector's are sums in single precision, in an order of its compiler's choice.
    bool exact;
};

/// None for an operator that is no distance of dense vectors of floating-point numbers: <->, <=>,
/// <#> or <+> of the extension gputext on real[] and double precision[], or of the extension vector
/// on vector and halfvec. Known by name, operands, result, and by the extension that operator and
/// function belong to. Looks up catalogs.
std::optional<DistanceOperator> distance_operator_of(Oid oper);

}  // namespace gputext
