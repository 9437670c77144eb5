// extension/planner/nearest_path.hpp - offers the planner to find the nearest items of all outer
// rows at once
//
// A path of a join whose inner side has the shape of nearest_shape.hpp, or of a subquery in FROM
// that has it and depends on no other relation; then the outer side is one row without columns. Its
// child is the planner's own join of both sides (nearest_plan.hpp). The item query is planned by
// itself, when the path is made, and the plan has it with it.

#pragma once

namespace gputext {

/// To be called once, when the library is loaded.
void offer_nearest_paths();

}  // namespace gputext
