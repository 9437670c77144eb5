// extension/planner/query_value.hpp - the value that items are compared with

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "nodes/execnodes.h"
}

#include <optional>

#include "extension/types/vector_type.hpp"

namespace gputext {

/// An expression, and what it is computed with. Functions give what lies in the memory for one row
/// of the context, and raise errors.
struct QueryValue {
    VectorType type;  // of a vector
    ExprState* state;
    ExprContext* context;

    /// None where it is null.
    std::optional<Datum> compute() const;
    /// None where it is null, or one that operators refuse.
    std::optional<VectorValue> vector() const;
};

}  // namespace gputext
