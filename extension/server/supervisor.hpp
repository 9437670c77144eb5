// extension/server/supervisor.hpp - the background worker that runs gputextd
//
// gputextd is a program of its own because whatever a GPU does to it, PostgreSQL must not see a
// process of its own die: it would restart all sessions. The supervisor starts it, reads its log,
// knows whether it is ready (SharedDaemon) and starts it again when it ends by itself. It ends
// gputextd when it ends, in whatever way: gputextd sees the end of a pipe and of its parent.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "postmaster/bgworker.h"
}

namespace gputext {

/// How the supervisor is to be registered: one for all databases, also on a hot standby. When it
/// ends, the next job that wants a device registers another one.
BackgroundWorker supervisor_worker();

}  // namespace gputext
