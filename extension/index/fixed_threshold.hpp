// extension/index/fixed_threshold.hpp - keeps ALTER INDEX from changing an index's threshold
//
// The rows of a table with an exclusion constraint were compared at the threshold of its index, and
// what rebuilds the index later, such as VACUUM FULL, does not always compare them again.

#pragma once

namespace gputext::index {

/// Called once, when the library is loaded, which is before any option of an index is read.
void keep_thresholds_fixed();

}  // namespace gputext::index
