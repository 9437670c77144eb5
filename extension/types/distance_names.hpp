// extension/types/distance_names.hpp - operators that are distances, by their names and extensions

#pragma once

#include "extension/base/postgres.hpp"

#include <optional>

#include "cpp/knn/distance.hpp"

namespace gputext {

/// The metric of an operator of this name, of gputext or of pgvector. None for another name.
std::optional<Metric> metric_of_operator(const char* name);

/// Whether the object of that catalog belongs to the extension of this name.
bool belongs_to_extension(Oid catalog, Oid object, const char* extension);

}  // namespace gputext
