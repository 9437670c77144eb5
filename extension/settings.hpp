// extension/settings.hpp - the settings gputext.*

#pragma once

#include <cstddef>

namespace gputext {

/// Called once, when the library is loaded.
void define_settings();

/// gputext.cpu_threads, with 0 replaced by the number of processors this process may run on.
unsigned cpu_threads();

/// gputext.host_memory_limit in bytes.
std::size_t host_memory_limit();

}  // namespace gputext
