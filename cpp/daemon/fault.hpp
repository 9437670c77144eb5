// cpp/daemon/fault.hpp - faults that tests can inject into gputextd

#pragma once

#include <cstdint>
#include <string_view>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/link/message_socket.hpp"

namespace gputext {

enum class FaultPoint {
    accept,        // of the next connection, whoever makes it
    before_job,    // a device has taken the job and read nothing of it
    in_job,        // on a device, each time that it tries the job or a part of it
    before_reply,  // the reply is ready
    // The next request of this kind, about resident values or terms; the faults are those of
    // before_job and, but for the ones of an answer's numbers and rows, before_reply.
    find_values,
    add_values,
    take_values,
    // The next copying of values into one, for a TakeValues of the connection, but for those of an
    // answer.
    fill_values
};

enum class FaultKind {
    none,
    // At any point:
    crash,  // by a segmentation fault
    abort,
    hang,   // until the job is cancelled; at accept, nothing of the connection is ever read
    stuck,  // for ever: only a kill ends it
    // At any but accept:
    slow,  // steps of 10 ms, for `count` milliseconds; the job's progress shows them
    hold,  // until it has been lifted `count` times
    // in_job, of all devices:
    gather,  // each waits until `count` devices have begun to work on the job
    // before_job and in_job, `count` times:
    out_of_memory,
    device_error,
    device_lost,
    // accept and before_reply:
    no_reply,  // the connection is closed instead
    wrong_magic,
    wrong_version,
    wrong_length,
    // before_reply:
    wrong_counts,  // more pairs than there are
    wrong_answer,  // classes of copies that are none
    short_file,    // truncated
    unsealed_file,
    no_file,
    too_many_files,
    // Of no job: counts for `hold` of all faults that were injected before, at any connection.
    lift
};

/// What a job, a request or a connection suffers. Each point's faults are for the next job or
/// request of the connection that asked for them, or for the next connection.
struct Fault {
    FaultPoint point = FaultPoint::accept;
    FaultKind kind = FaultKind::none;
    unsigned count = 1;
    /// Of in_job: the device that suffers it, whichever part of the job it works on. Without one,
    /// -1, the device suffers it that works with the job's own execution: at first the one that has
    /// taken the job.
    std::int32_t device = -1;
    std::uint64_t lifts = 0;  // how many there were when it was parsed
};

/// Whether it is a job's, and neither a request's nor a connection's.
bool of_job(const Fault& fault);

/// Parses "POINT:KIND", "POINT:KIND:COUNT" or "in_job:KIND:COUNT:DEVICE", with the names above.
/// Error: invalid_argument.
Result<Fault> parse_fault(std::string_view text);

/// Lifts all faults that hold. For all threads.
void lift_faults();

/// Lets the fault happen if it is one of this point: returns late, never, or with the Status that
/// the step returns instead of doing its work; counts down.
Status suffer(Fault& fault, FaultPoint point, Execution& execution);

/// Makes a reply what the fault says. An empty packet stands for none.
void break_reply(const Fault& fault, Packet& reply);

}  // namespace gputext
