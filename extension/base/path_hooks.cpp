#include "extension/base/path_hooks.hpp"

namespace gputext {
namespace {

set_join_pathlist_hook_type joins_before = nullptr, own_joins = nullptr;
set_rel_pathlist_hook_type scans_before = nullptr, own_scans = nullptr;

void add_join_paths(PlannerInfo* root, RelOptInfo* join, RelOptInfo* outer, RelOptInfo* inner,
                    JoinType type, JoinPathExtraData* extra) {
    if (joins_before != nullptr) joins_before(root, join, outer, inner, type, extra);
    own_joins(root, join, outer, inner, type, extra);
}

void add_scan_paths(PlannerInfo* root, RelOptInfo* relation, Index number, RangeTblEntry* from) {
    if (scans_before != nullptr) scans_before(root, relation, number, from);
    own_scans(root, relation, number, from);
}

}  // namespace

void install_join_paths(set_join_pathlist_hook_type add_paths) {
    joins_before = set_join_pathlist_hook;
    own_joins = add_paths;
    set_join_pathlist_hook = add_join_paths;
}

void install_scan_paths(set_rel_pathlist_hook_type add_paths) {
    scans_before = set_rel_pathlist_hook;
    own_scans = add_paths;
    set_rel_pathlist_hook = add_scan_paths;
}

bool only_own_paths() {
    const bool joins = set_join_pathlist_hook == add_join_paths && joins_before == nullptr;
    const bool scans = set_rel_pathlist_hook == add_scan_paths && scans_before == nullptr;
    return joins && scans;
}

}  // namespace gputext
