// cpp/link/protocol.hpp - wire format between a backend and gputextd
//
// The link is a Unix socket of type SOCK_SEQPACKET: one packet is one message, so nothing has to be
// put together again, the kernel keeps the descriptors with the message that they belong to, and a
// reader that finds one message broken loses no other. Messages are small (64 KiB at most); what
// may be large travels in files in memory whose descriptors go with the message (SCM_RIGHTS).
// Both ends run on one machine, so numbers are in its byte order and alignment is its own.
//
//     header    magic u32 "GPTX", version u16, type u16, size of the body u32, descriptors u32
//     body      the message's fields (wire.hpp)
//
// The header stays the same in every version. A conversation:
//
//     client    Hello
//     server    Hello; of another version, or an ErrorReply, when it will not talk
//     client    a job (Submit...), one at a time, or one of the questions, at any time
//     server    Progress, now and then; at last the job's reply or ErrorReply
//               a question is answered in its turn, also during a job
//
// Between jobs a client may hand over values that stay at the server, and ask for such
// (resident_values.hpp), one request at a time.
//
// A client cancels its job by closing the socket. A message that is broken gets an ErrorReply, and
// the server closes.
//
// Messages of jobs and their replies are declared with their operators (operators.hpp), which also
// say what the files are, in the order of their descriptors. Every file has exactly the size that
// follows from the message.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/link/device_info.hpp"
#include "cpp/link/file_parts.hpp"
#include "cpp/link/operators.hpp"
#include "cpp/link/resident_values.hpp"
#include "cpp/link/type_list.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

inline constexpr std::uint32_t kProtocolMagic = 0x58545047;  // "GPTX" in memory
inline constexpr std::uint16_t kProtocolVersion = 14;
inline constexpr std::size_t kMaxMessageSize = 65536;
/// Two sparse matrices, their elements in parts, and two kinds of keys of their rows. Below the
/// kernel's limit, 253 a packet.
inline constexpr std::size_t kMaxDescriptors = 2 * (kMostParts + 2) + 2;
static_assert(2 * kMostTermChunks + 1 <= kMaxDescriptors);

inline constexpr std::size_t kMaxDevices = 64;
inline constexpr std::size_t kMaxActivity = 128;

/// The first message of each side.
struct Hello {
    static constexpr std::uint16_t type = 1;
    std::uint32_t pid = 0;
    /// The server's version and a digest of its sources. Empty from a client.
    std::string release;

    static void fields(auto& archive, auto& self) { archive(self.pid, self.release); }
};

/// Sent a few times a second while a job waits and runs.
struct Progress {
    static constexpr std::uint16_t type = 3;
    std::string phase;
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    std::int32_t device = -1;  // -1 while the job waits for one
    std::uint32_t epoch = 0;   // as in Execution
    double loss = 0;           // the same

    static void fields(auto& archive, auto& self) {
        archive(self.phase, self.done, self.total, self.device, self.epoch, self.loss);
    }
};

constexpr ErrorCode last_of(ErrorCode) {
    return ErrorCode::internal_error;
}

struct ErrorReply {
    static constexpr std::uint16_t type = 5;
    ErrorCode code = ErrorCode::internal_error;  // never ok
    std::string message;
    std::string hint;
    std::uint16_t request = 0;  // type of the message that it replies to; 0 for one not understood

    static void fields(auto& archive, auto& self) {
        archive(self.code);
        archive.text(self.message, kMaxSentence);
        archive.text(self.hint, kMaxSentence);
        archive(self.request);
    }
    bool consistent() const { return code != ErrorCode::ok; }
};

/// The reply to a request of that type.
inline ErrorReply error_reply(std::uint16_t request, const Status& status) {
    return {status.code(), status.message(), status.hint(), request};
}

struct AskDevices {
    static constexpr std::uint16_t type = 6;
    static void fields(auto&, auto&) {}
};

struct DeviceList {
    static constexpr std::uint16_t type = 7;
    std::vector<DeviceInfo> devices;
    std::string why_none;  // a sentence when there are none

    static void fields(auto& archive, auto& self) {
        archive.list(self.devices, kMaxDevices);
        archive.text(self.why_none, kMaxSentence);
    }
};

struct AskActivity {
    static constexpr std::uint16_t type = 8;
    static void fields(auto&, auto&) {}
};

struct RunningJob {
    std::uint32_t pid = 0;  // of the client
    std::string operation;
    std::int32_t device = -1;  // -1 while it waits for one
    std::string phase;
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    std::uint32_t epoch = 0;  // as in Execution
    double loss = 0;          // the same
    std::uint64_t rows = 0;   // of its input
    std::uint64_t bytes = 0;  // of its input
    double seconds = 0;       // since it was submitted

    static void fields(auto& archive, auto& self) {
        archive(self.pid, self.operation, self.device, self.phase, self.done, self.total,
                self.epoch, self.loss, self.rows, self.bytes, self.seconds);
    }
};

struct ActivityList {
    static constexpr std::uint16_t type = 9;
    std::vector<RunningJob> jobs;  // the oldest kMaxActivity ones

    static void fields(auto& archive, auto& self) { archive.list(self.jobs, kMaxActivity); }
};

struct AskCounters {
    static constexpr std::uint16_t type = 10;
    static void fields(auto&, auto&) {}
};

/// Since the server started. A job that ended is exactly one of jobs, failures and cancelled.
struct CounterValues {
    static constexpr std::uint16_t type = 11;
    std::uint64_t jobs = 0;          // answered
    std::uint64_t rows = 0;          // of their inputs
    std::uint64_t bytes = 0;         // the same
    std::uint64_t milliseconds = 0;  // that devices worked for any job
    std::uint64_t retries = 0;
    std::uint64_t failures = 0;
    std::uint64_t cancelled = 0;

    static void fields(auto& archive, auto& self) {
        archive(self.jobs, self.rows, self.bytes, self.milliseconds, self.retries, self.failures,
                self.cancelled);
    }
};

/// For tests: see cpp/daemon/fault.hpp. Refused unless the server was started to allow it.
struct InjectFault {
    static constexpr std::uint16_t type = 12;
    std::string fault;

    static void fields(auto& archive, auto& self) { archive(self.fault); }
};

using Messages = Join<TypeList<Hello, Progress, ErrorReply, AskDevices, DeviceList, AskActivity,
                               ActivityList, AskCounters, CounterValues, InjectFault>,
                      Submits, Replies, ValueRequests, ValueReplies>;
using Message = VariantOf<Messages>;

/// Whether messages of that type submit jobs.
bool submits_job(std::uint16_t type);
/// Whether messages of that type are requests about resident values.
bool asks_for_values(std::uint16_t type);

/// The packet of a message. Texts and lists that are too long are cut.
std::vector<std::uint8_t> encode(const Message& message);

/// The message of a packet that came with so many descriptors. Whatever the bytes are, reads none
/// beyond them; numbers in the message are only bounded by its consistent(), and texts are
/// printable ASCII, other bytes replaced. Errors: invalid_argument; unavailable when the packet is
/// of another version.
Result<Message> decode(std::span<const std::uint8_t> packet, std::size_t descriptors);

/// How many descriptors go with a message.
std::size_t descriptors_of(const Message& message);

}  // namespace gputext
