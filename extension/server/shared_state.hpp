// extension/server/shared_state.hpp - what sessions and the supervisor share: gputextd's state,
// running jobs, counters, the number of threads at work
//
// It lies in a dynamic segment that the first one to ask for it makes, since the library need not
// be preloaded; only the segment's handle is in the main shared memory, of which the server has
// little to spare for latecomers. The segment stays until the server stops or restarts after a
// crash.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"
}

#include <cstddef>
#include <cstdint>

#include "cpp/link/protocol.hpp"

namespace gputext {

/// Where gputextd listens, relative to the data directory, where every process of the server works.
/// Base backups and pg_rewind leave out what is named so.
inline constexpr char kDaemonSocket[] = "pgsql_tmp_gputext.sock";
inline constexpr char kDaemonSocketLock[] = "pgsql_tmp_gputext.sock.lock";  // ListeningSocket's

/// Where gputextd is in its life, as the supervisor knows it.
enum class DaemonPhase {
    absent,      // nobody wants it, or its supervisor ended; a job that wants it starts one
    requested,   // a session has registered the supervisor, which does not run yet
    starting,    // the process runs and does not answer yet
    ready,       // it has devices and takes jobs
    waiting,     // it ended by itself too often, and is started again after a while
    no_devices,  // it found none; `why` says the reason. It ended, as did the supervisor, unless it
                 // keeps values: gputext.resident_memory
    failed       // it cannot be started, and the supervisor ended; `why` says the reason
};

struct SharedDevice {
    char name[kMaxName];
    char driver[kMaxName];
    std::uint64_t memory;
};

/// State of gputextd. Read and written under SharedState::lock.
struct SharedDaemon {
    DaemonPhase phase;
    pid_t supervisor;     // 0: none
    pid_t daemon;         // 0: none
    struct Latch* latch;  // of the supervisor
    bool doubted;         // a session got no answer from a daemon that is ready: ask it again
    bool look_wanted;     // for devices: a session wants one, and the daemon that runs has none
    TimestampTz changed_at;
    char why[512];
    int looks_in_vain;          // for devices, or for a program that can be run, one after another
    TimestampTz look_again_at;  // after such a look, not before
    char release[kMaxName];     // of the daemon that runs, as in Hello
    bool replaced;              // its program on disk is another one than that which runs
    int devices;                // how many of the list hold
    SharedDevice device[kMaxDevices];
};

/// Why a job that could have run on a GPU ran on the CPU.
enum class Fallback : int {
    no_device,       // there is none
    no_worker_slot,  // the supervisor got no background worker
    not_ready,       // gputextd is starting again after it ended, or cannot be started
    out_of_memory,   // of the device, however small its tiles
    device_error,    // the device or its driver failed
    daemon_lost,     // gputextd ended or became unintelligible during the job
    count
};
const char* name_of(Fallback reason);

enum class Counter : int {
    gpu_jobs,  // answered
    cpu_jobs,
    failures,
    cancelled,
    rows,
    bytes,
    gpu_milliseconds,
    cpu_milliseconds,
    retries,   // with less device memory
    restarts,  // of gputextd, after it ended by itself
    count
};

// Where a job is if not on a device:
inline constexpr std::int32_t kOnCpu = -1;
inline constexpr std::int32_t kNowhereYet = -2;  // reading its rows, or waiting for a device

/// A session's running job. Only the session writes it, as PostgreSQL does its own: the count is
/// odd meanwhile, and a reader tries again when it was odd or has changed.
struct SharedActivity {
    std::uint32_t changes;
    int pid;  // 0: none
    Oid role;
    char operation[32];
    char phase[48];
    std::int32_t device;  // its number, or one of the above
    std::uint64_t done;
    std::uint64_t total;
    double rate;          // steps a second of the phase; 0 when nobody knows it
    std::uint32_t epoch;  // of a training, as in Execution
    double loss;          // the same
    std::uint64_t rows;
    std::uint64_t bytes;
    TimestampTz start;
};

/// Raise it with every change of what is shared or of its meaning.
inline constexpr int kSharedStateVersion = 4;

struct SharedState {
    LWLock lock;
    std::uint64_t run;          // a random number, not 0
    ConditionVariable changed;  // the daemon's phase
    SharedDaemon daemon;
    TimestampTz since;  // of the counters
    pg_atomic_uint64 counters[static_cast<int>(Counter::count)];
    pg_atomic_uint64 fallbacks[static_cast<int>(Fallback::count)];
    pg_atomic_uint32 helper_threads;  // that sessions have taken
    int activities;
    SharedActivity activity[FLEXIBLE_ARRAY_MEMBER];  // by backend id
};

/// Maps it into this process at the first call. Raises an error when there is no shared memory.
SharedState* shared_state();

/// A number that no other run of the server's shared memory has: a crash of a session ends one, as
/// does a stop of the server.
std::uint64_t server_run();

/// Takes threads from those that all sessions share, of which there are `most`: as many of `wanted`
/// as are left, perhaps none. Whoever takes them gives them back, however its work ends.
unsigned take_helper_threads(unsigned wanted, unsigned most);
void give_helper_threads_back(unsigned threads);

void add_to_counter(Counter counter, std::uint64_t amount = 1);
void count_fallback(Fallback reason);

}  // namespace gputext
