// extension/index/learn_model.hpp - the model of an index, learned from some rows of its table

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "nodes/execnodes.h"
#include "utils/relcache.h"
}

#include "cpp/documents/sketch_model.hpp"

namespace gputext::index {

/// Reads up to 1,600 documents of up to 400 blocks all over the table, the first 32 KB of each, as
/// the index has them: its expression, of rows that meet its condition. A table with few documents
/// teaches nothing: the index gets the general model. The numbers are allocated in the current
/// memory context.
SketchModel learn_model(Relation table, Relation index, IndexInfo* info, SketchShape shape);

/// The model of an index whose documents are not known.
SketchModel general_model(SketchShape shape);

}  // namespace gputext::index
