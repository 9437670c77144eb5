// extension/inputs/linkage_model_query.hpp - reads a linkage model, as linkage_model() returns it,
// from an inner query

#pragma once

#include "extension/base/postgres.hpp"

#include "cpp/records/linkage_model.hpp"

namespace gputext {

/// Reads the model that the query gives. Columns are known by their names, those of
/// linkage_model(); match_weight may be missing, and others are not looked at. Rows come in any
/// order: fields are in the order in which they come first. Raises an error that names the field
/// and the level for whatever is missing, comes twice or is out of its range, and for match weights
/// that are not those of m and u.
void read_linkage_model(const char* sql, LinkageModel& model);

}  // namespace gputext
