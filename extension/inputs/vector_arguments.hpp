// extension/inputs/vector_arguments.hpp - arguments shared by the functions of vectors

#pragma once

#include "extension/base/postgres.hpp"

#include <optional>

#include "cpp/base/vectors.hpp"
#include "cpp/bits/bit_distance.hpp"
#include "cpp/knn/distance.hpp"
#include "extension/inputs/arguments.hpp"

namespace gputext {

/// The metric of vectors of that name. None for another name.
std::optional<Metric> metric_of(const char* name);

/// The parameter metric; raises an error when it names none, with the detail if there is one.
Metric metric_argument(const Arguments& arguments, const char* detail = nullptr);

/// The same where it has to be a distance: the inner product is none.
Metric distance_argument(const Arguments& arguments);

/// The metric of bit strings of that name. None for another name.
std::optional<BitMetric> bit_metric_of(const char* name);
const char* name_of(BitMetric metric);

/// Two vectors of equal dimensions, each a matrix of one row in the memory of its array.
struct VectorPair {
    Vectors a, b;
};

/// The first two arguments of a strict function of two arrays of numbers. Raises an error for
/// arrays that read_array() finds fault with, and for different numbers of elements.
VectorPair vector_pair(FunctionCallInfo fcinfo);

}  // namespace gputext
