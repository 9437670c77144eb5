// extension/planner/query_vector.hpp - the vector that items are compared with

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "nodes/execnodes.h"
}

#include <optional>

#include "extension/types/vector_type.hpp"

namespace gputext {

/// The expression of a vector, and what it is computed with.
struct QueryVector {
    VectorType type;
    ExprState* state;
    ExprContext* context;

    /// In the memory for one row of the context; none where it is null, or one that operators
    /// refuse. Raises errors.
    std::optional<VectorValue> compute() const;
};

}  // namespace gputext
