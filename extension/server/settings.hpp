// extension/server/settings.hpp - the settings gputext.*

#pragma once

#include <cstddef>
#include <cstdint>

namespace gputext {

/// Raises an error if the connection's options set what its user may not set. A server that knows
/// the settings from its start refuses such a connection. One that does not has taken the options'
/// values in the place of the configured ones, which cannot be had back: so the library is not
/// loaded.
void refuse_settings_of_connection();

/// Called once, when the library is loaded.
void define_settings();

/// The threads that a statement may compute on: gputext.cpu_threads, with 0 replaced by the number
/// of processors this process may run on, but at most gputext.max_cpu_threads.
unsigned cpu_threads();

/// gputext.max_helper_threads: the maximum for all sessions, for take_helper_threads().
unsigned max_helper_threads();

/// gputext.read_workers: the parallel workers that a statement may read rows in, with -1 replaced
/// by max_parallel_workers. None in a parallel worker itself.
unsigned read_workers();

/// gputext.host_memory_limit in bytes, at most gputext.max_host_memory.
std::size_t host_memory_limit();

/// gputext.scan_memory in bytes, 0 for none: what a session may keep of its scans.
std::size_t scan_memory();

/// gputext.device: where a statement computes.
enum class DeviceSetting {
    automatic,  // on a device where that is faster, else, and where a device fails, on the CPU
    gpu,        // on a device, or not at all
    cpu
};
DeviceSetting device_setting();

/// gputext.gpu_memory_limit in bytes; 0 is as much as a device gives.
std::uint64_t gpu_memory_limit();

/// gputext.progress: whether a running statement tells the client how far it is.
bool progress_wanted();

/// gputext.plan_nearest: whether the planner may search the nearest rows of many others at once.
enum class PlanNearest {
    off,
    on,    // where it costs less
    force  // whatever it costs; for tests
};
PlanNearest plan_nearest();

/// gputext.build_hnsw: whether gputext builds the indexes of pgvector's access method hnsw.
bool build_hnsw_wanted();
/// gputext.hnsw_exact_rows; 0: what suits the device.
std::size_t hnsw_exact_rows();

/// gputext.near_duplicate_threshold: the edit rate of the operator ~=.
double near_duplicate_threshold();

/// gputext.inject_fault, empty for none: what each job asks gputextd for (cpp/daemon/fault.hpp).
const char* injected_fault();

/// gputext.resident_memory in bytes, 0 for none: what gputextd may keep of values that were read.
std::uint64_t resident_memory();

/// What gputextd is started with: gputext.fake_devices and gputext.allow_faults, for tests, and
/// resident_memory().
struct DaemonSettings {
    int fake_devices;
    bool allow_faults;
    std::uint64_t resident_memory;

    bool operator==(const DaemonSettings&) const = default;
};
DaemonSettings daemon_settings();

}  // namespace gputext
