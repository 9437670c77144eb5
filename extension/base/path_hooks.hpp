// extension/base/path_hooks.hpp - where this module adds paths to those of the planner

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "optimizer/paths.h"
}

namespace gputext {

/// Calls `add_paths` for each pair of relations that the planner joins, after the modules that were
/// loaded before. To be called once.
void install_join_paths(set_join_pathlist_hook_type add_paths);

/// Calls `add_paths` for each relation of FROM, after the modules that were loaded before. To be
/// called once.
void install_scan_paths(set_rel_pathlist_hook_type add_paths);

/// Whether no other module offers paths of relations or joins.
bool only_own_paths();

}  // namespace gputext
