// extension/server/waiting.hpp - lets a session wait for a computation and stay interruptible

#pragma once

#include "extension/base/postgres.hpp"

namespace gputext {

/// Waits until there is something to read, at most so many milliseconds; whether there is.
bool wait_until_readable(int descriptor, long milliseconds);

/// How often who waits looks how far it is.
inline constexpr long kLookEveryMilliseconds = 100;

}  // namespace gputext
