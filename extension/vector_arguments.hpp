// extension/vector_arguments.hpp - arguments that functions of vectors have in common

#pragma once

#include "extension/postgres.hpp"

#include "cpp/distance.hpp"

namespace gputext {

/// Raises an error when it is null or names no metric.
Metric metric_argument(FunctionCallInfo fcinfo, int argument);

/// At least 1. `id_type_place` is for those who have given a null id_type without its name.
std::size_t k_argument(FunctionCallInfo fcinfo, int argument);

/// A type of ids: that of an argument, or bigint without one.
Oid id_type_argument(FunctionCallInfo fcinfo, int argument, bool typed);

}  // namespace gputext
