// extension/rows/vector_arguments.hpp - arguments shared by the functions of vectors

#pragma once

#include "extension/base/postgres.hpp"

#include "cpp/knn/distance.hpp"
#include "extension/rows/arguments.hpp"

namespace gputext {

/// The parameter metric; raises an error when it names none.
Metric metric_argument(const Arguments& arguments);

}  // namespace gputext
