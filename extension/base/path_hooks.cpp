#include "extension/base/path_hooks.hpp"

namespace gputext {
namespace {

set_join_pathlist_hook_type previous = nullptr;
set_join_pathlist_hook_type own = nullptr;

void add_all_paths(PlannerInfo* root, RelOptInfo* join, RelOptInfo* outer, RelOptInfo* inner,
                   JoinType type, JoinPathExtraData* extra) {
    if (previous != nullptr) previous(root, join, outer, inner, type, extra);
    own(root, join, outer, inner, type, extra);
}

}  // namespace

void install_join_paths(set_join_pathlist_hook_type add_paths) {
    previous = set_join_pathlist_hook;
    own = add_paths;
    set_join_pathlist_hook = add_all_paths;
}

bool only_own_join_paths() {
    return set_join_pathlist_hook == nullptr ||
           (set_join_pathlist_hook == add_all_paths && previous == nullptr);
}

}  // namespace gputext
