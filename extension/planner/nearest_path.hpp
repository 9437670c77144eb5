// extension/planner/nearest_path.hpp - offers the planner to find the nearest items of all outer
// rows at once
//
// A path of a join whose inner side has the shape of nearest_shape.hpp, or of a subquery in FROM
// that has it and depends on no other relation. Its only child is the path of the outer side, which
// is one row without columns for such a subquery. The item query and the ordinary one are planned
// by themselves, when the path is made; the plan has both with it (nearest_plan.hpp), and all that
// depends on them: the tables that are to be locked before a cached plan is used, and the objects
// whose change makes it invalid.

#pragma once

namespace gputext {

/// To be called once, when the library is loaded.
void offer_nearest_paths();

}  // namespace gputext
