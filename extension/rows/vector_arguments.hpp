// extension/rows/vector_arguments.hpp - arguments shared by the functions of vectors

#pragma once

#include "extension/base/postgres.hpp"

#include "cpp/knn/distance.hpp"

namespace gputext {

/// Raises an error when it is null or names no metric.
Metric metric_argument(FunctionCallInfo fcinfo, int argument);

/// At least 1; raises an error for others and null.
std::size_t k_argument(FunctionCallInfo fcinfo, int argument);

/// The type of ids: that of the argument id_type, or bigint where the function has none.
Oid id_type_argument(FunctionCallInfo fcinfo, int argument, bool typed);

}  // namespace gputext
