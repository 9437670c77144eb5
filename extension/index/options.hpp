// extension/index/options.hpp - the options of an index, as CREATE INDEX ... WITH (...) gives them

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/relcache.h"
}

#include <cstddef>

namespace gputext::index {

/// amoptions. Raises an error for values that no index can have, if `validate`.
bytea* read_options(Datum options, bool validate);

/// The option bins: how many counts of bigrams sketches have on average.
std::size_t wanted_bins(Relation index);

/// The option threshold: up to which edit rate an exclusion constraint refuses documents. It is
/// fixed when the index is created. Dumps do not name the default, so that never changes.
inline constexpr double kDefaultThreshold = 0.05;
double threshold_of(Relation index);

/// Keeps ALTER INDEX from changing the threshold: the rows of a table with an exclusion constraint
/// were compared at it, and what rebuilds the index later, such as VACUUM FULL, does not always
/// compare them again. Called once, when the library is loaded, which is before any option of an
/// index is read.
void keep_thresholds_fixed();

/// Raises the error of an index with a threshold that is of no constraint.
[[noreturn]] void raise_no_constraint();

}  // namespace gputext::index
