// extension/settings.hpp - the settings gputext.*

#pragma once

#include <cstddef>

#include "extension/daemon_process.hpp"

namespace gputext {

/// Called once, when the library is loaded.
void define_settings();

/// gputext.cpu_threads, with 0 replaced by the number of processors this process may run on.
unsigned cpu_threads();

/// gputext.host_memory_limit in bytes.
std::size_t host_memory_limit();

/// gputext.fake_devices and gputext.allow_faults, for tests.
DaemonSettings daemon_settings();

}  // namespace gputext
