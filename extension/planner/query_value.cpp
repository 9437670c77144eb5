#include "extension/planner/query_value.hpp"

extern "C" {
#include "executor/executor.h"
}

namespace gputext {

std::optional<Datum> QueryValue::compute() const {
    bool null = false;
    const Datum value = ExecEvalExprSwitchContext(state, context, &null);
    return null ? std::nullopt : std::optional(value);
}

std::optional<VectorValue> QueryValue::vector() const {
    const std::optional<Datum> value = compute();
    if (!value) return std::nullopt;
    const MemoryContext before = MemoryContextSwitchTo(context->ecxt_per_tuple_memory);
    VectorValue vector{};
    const bool fits = read_vector(type, *value, vector) == VectorFault::none;
    MemoryContextSwitchTo(before);
    return fits ? std::optional(vector) : std::nullopt;
}

}  // namespace gputext
