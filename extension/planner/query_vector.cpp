#include "extension/planner/query_vector.hpp"

extern "C" {
#include "executor/executor.h"
}

namespace gputext {

std::optional<VectorValue> QueryVector::compute() const {
    const MemoryContext before = MemoryContextSwitchTo(context->ecxt_per_tuple_memory);
    bool null = false;
    VectorValue vector{};
    const Datum value = ExecEvalExpr(state, context, &null);
    const bool fits = !null && read_vector(type, value, vector) == VectorFault::none;
    MemoryContextSwitchTo(before);
    return fits ? std::optional(vector) : std::nullopt;
}

}  // namespace gputext
