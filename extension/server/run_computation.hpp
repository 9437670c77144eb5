// extension/server/run_computation.hpp - runs a computation on a device or on the CPU: choice,
// wait, fallback, counters
//
// This is the same for all operators: the choice, the wait, what other sessions see of it, the
// counters, and the CPU where a device fails.

#pragma once

#include "extension/base/postgres.hpp"

#include "extension/server/computation.hpp"
#include "extension/server/time_split.hpp"

namespace gputext {

/// Computes it where gputext.device says, and returns when that is done. Raises an error when it
/// cannot be done there. The context is to end before the computation does.
void run_computation(Computation& computation, TimeSplit& times, MemoryContext context);

}  // namespace gputext
