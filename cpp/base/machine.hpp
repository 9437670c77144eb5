// cpp/base/machine.hpp - how much memory and how many processors this process may use: those of the
// machine, or fewer where a container or a service (a control group of Linux) allows fewer

#pragma once

#include <cstdint>
#include <string>

namespace gputext {

/// Bytes; 0 where the system does not tell. The least of the machine's memory and of the limits of
/// the process' control group and of the groups around it (memory.max of version 2,
/// memory.limit_in_bytes of version 1). `root` is put before /proc and /sys, for tests. Reads a few
/// files at each call.
std::uint64_t usable_memory(const std::string& root = {});

/// At least 1. The least of the processors that the process may run on and of the shares of
/// processors that the control groups allow, rounded up (cpu.max of version 2, cpu.cfs_quota_us and
/// cpu.cfs_period_us of version 1). `root` as above.
unsigned usable_processors(const std::string& root = {});

}  // namespace gputext
