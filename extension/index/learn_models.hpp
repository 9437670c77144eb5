// extension/index/learn_models.hpp - the models of an index, learned from some rows of its table

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "nodes/execnodes.h"
#include "utils/relcache.h"
}

#include <cstddef>
#include <span>

#include "cpp/documents/sketch_model_learner.hpp"

namespace gputext::index {

/// Reads up to 3,200 documents of up to 400 blocks all over the table, the first 32 KB of each, as
/// the index has them: its expression, of rows that meet its condition. Learns a model for each
/// 20,000 rows, kMostSketchModels at most. A table with few documents teaches nothing: the index
/// gets the general model. Learns on the session's threads, and allocates the models
/// in the current memory context.
std::span<const SketchModel> learn_models(Relation table, Relation index, IndexInfo* info,
                                          std::size_t bins);

/// The model of an index whose documents are not known.
SketchModel general_model(std::size_t bins);

}  // namespace gputext::index
