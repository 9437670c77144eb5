// cpp/protocol.hpp - what a backend and gputextd say to each other: the whole wire format
//
// The link is a Unix socket of type SOCK_SEQPACKET: one packet is one message, so nothing has to be
// put together again, the kernel keeps the descriptors with the message that they belong to, and a
// reader that finds one message broken loses no other. Messages are small (64 KiB at most); what
// may be large travels in files in memory whose descriptors go with the message (SCM_RIGHTS).
// Both ends run on one machine, so numbers are in its byte order and alignment is its own.
//
//     header    magic u32 "GPTX", version u16, type u16, size of the body u32, descriptors u32
//     body      the message's fields in the order of its struct below: numbers as they are,
//               bool u8, enum u32, text u16 length and bytes, list u32 length and elements
//
// The header stays the same in every version. A conversation:
//
//     client    Hello
//     server    Hello; of another version, or an ErrorReply, when it will not talk
//     client    SubmitNearDuplicates, one at a time, or one of the questions, at any time
//     server    Progress, now and then; at last NearDuplicatesReply or ErrorReply
//               a question is answered in its turn, also during a job
//
// A client cancels its job by closing the socket. A message that is broken gets an ErrorReply, and
// the server closes.
//
// Descriptors, in this order, every file of exactly the size that follows from the message:
//     SubmitNearDuplicates   the documents' packed bytes: a sealed memfd or a plain file;
//                            Extent[documents], in a sealed memfd;
//                            with signatures: PackedSignature[documents] and the letters of all of
//                            them, in a sealed memfd
//     NearDuplicatesReply    u32 first_copies[documents], zeros up to a multiple of 8 bytes,
//                            NearPair[pairs], in a sealed memfd
// Sealed is: F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_WRITE. Then a mapping can never fault and what
// has been checked stays so.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cpp/ctph.hpp"
#include "cpp/documents.hpp"
#include "cpp/execution.hpp"
#include "cpp/near_duplicates.hpp"
#include "cpp/status.hpp"

namespace gputext {

inline constexpr std::uint32_t kProtocolMagic = 0x58545047;  // "GPTX" in memory
inline constexpr std::uint16_t kProtocolVersion = 1;
inline constexpr std::size_t kMaxMessageSize = 65536;
inline constexpr std::size_t kMaxDescriptors = 3;

// Longer texts are cut and longer lists end there when written, and are errors when read.
inline constexpr std::size_t kMaxName = 128;
inline constexpr std::size_t kMaxSentence = 2048;
inline constexpr std::size_t kMaxDevices = 64;
inline constexpr std::size_t kMaxActivity = 128;
inline constexpr std::size_t kMaxPhases = 64;

/// The first message of each side.
struct Hello {
    static constexpr std::uint16_t type = 1;
    std::uint32_t pid = 0;
    std::string release;  // of the program that speaks, for people
};

struct SubmitNearDuplicates {
    static constexpr std::uint16_t type = 2;
    std::uint32_t documents = 0;
    std::uint64_t bytes = 0;  // size of the packed documents
    bool has_signatures = false;
    std::uint64_t signature_bytes = 0;  // size of that file; 0 without signatures
    double threshold = 0;               // the rest as in NearDuplicateParameters
    NearDuplicateMode mode = NearDuplicateMode::ctph;
    std::uint32_t signature_length = 0;
    std::uint64_t host_memory_limit = 0;
    std::uint64_t device_memory_limit = 0;  // bytes; 0 is as much as the device gives
    std::int32_t device = -1;               // the only one to use, or -1 for any
    std::array<std::uint8_t, 256> character_lengths{};
};

/// Sent a few times a second while a job waits and runs.
struct Progress {
    static constexpr std::uint16_t type = 3;
    std::string phase;
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    std::int32_t device = -1;  // -1 while the job waits for one
};

struct NearDuplicatesReply {
    static constexpr std::uint16_t type = 4;
    std::uint32_t documents = 0;
    std::uint64_t pairs = 0;
    bool copies_are_near = false;
    std::int32_t device = 0;  // that ran the job
    std::string device_name;
    double seconds = 0;         // from the start on the device to the reply
    std::uint32_t retries = 0;  // with less memory, after the device had run out of it
    std::vector<PhaseTime> phases;
};

struct ErrorReply {
    static constexpr std::uint16_t type = 5;
    ErrorCode code = ErrorCode::internal_error;  // never ok
    std::string message;
    std::string hint;
    std::uint16_t request = 0;  // type of the message that it replies to; 0 for one not understood
};

/// The reply to a request of that type.
template <class Request>
ErrorReply error_reply(const Status& status) {
    return {status.code(), status.message(), status.hint(), Request::type};
}

struct AskDevices {
    static constexpr std::uint16_t type = 6;
};

struct DeviceInfo {
    std::string name;
    std::uint64_t memory = 0;  // bytes
    std::string driver;
};

struct DeviceList {
    static constexpr std::uint16_t type = 7;
    std::vector<DeviceInfo> devices;
    std::string why_none;  // a sentence when there are none
};

struct AskActivity {
    static constexpr std::uint16_t type = 8;
};

struct RunningJob {
    std::uint32_t pid = 0;  // of the client
    std::string operation;
    std::int32_t device = -1;  // -1 while it waits for one
    std::string phase;
    std::uint64_t done = 0;
    std::uint64_t total = 0;
    std::uint64_t documents = 0;
    std::uint64_t bytes = 0;
    double seconds = 0;  // since it was submitted
};

struct ActivityList {
    static constexpr std::uint16_t type = 9;
    std::vector<RunningJob> jobs;  // the oldest kMaxActivity ones
};

struct AskCounters {
    static constexpr std::uint16_t type = 10;
};

/// Since the server started. A job that ended is exactly one of jobs, failures and cancelled.
struct CounterValues {
    static constexpr std::uint16_t type = 11;
    std::uint64_t jobs = 0;          // answered
    std::uint64_t documents = 0;     // of those
    std::uint64_t bytes = 0;         // of those
    std::uint64_t milliseconds = 0;  // that devices worked for any job
    std::uint64_t retries = 0;
    std::uint64_t failures = 0;
    std::uint64_t cancelled = 0;
};

/// For tests: see cpp/fault.hpp. Refused unless the server was started to allow it.
struct InjectFault {
    static constexpr std::uint16_t type = 12;
    std::string fault;
};

using Message =
    std::variant<Hello, SubmitNearDuplicates, Progress, NearDuplicatesReply, ErrorReply, AskDevices,
                 DeviceList, AskActivity, ActivityList, AskCounters, CounterValues, InjectFault>;

/// The packet of a message. Texts and lists that are too long are cut.
std::vector<std::uint8_t> encode(const Message& message);

/// The message of a packet that came with so many descriptors. Whatever the bytes are, reads none
/// beyond them; numbers in the message are only bounded where this header says so, and texts are
/// printable ASCII, other bytes replaced. Errors: invalid_argument; unavailable when the packet is
/// of another version.
Result<Message> decode(std::span<const std::uint8_t> packet, std::size_t descriptors);

/// How many descriptors go with a message.
std::size_t descriptors_of(const Message& message);

// ---- What lies in the files ----

/// Ok when every document lies within so many packed bytes and is below 2^31 bytes.
Status check_extents(std::span<const Extent> extents, std::uint64_t bytes);

struct PackedSignature {
    std::uint64_t begin;         // of the letters, counted from the first signature's
    std::uint16_t first_length;  // as in Ctph
    std::uint16_t length;        // of all letters
    std::uint8_t level;
    std::uint8_t present;  // 0: there is none, all else is 0 then; or 1
    std::uint16_t zero;
};
static_assert(sizeof(PackedSignature) == 16);

/// Of no use once `stop` has said so.
std::vector<std::uint8_t> pack_signatures(GivenSignatures signatures, Stop stop = {});

/// The inverse, of a file for so many documents; invalid_argument for anything that pack_signatures
/// would not write; cancelled.
Result<std::vector<std::optional<Ctph>>> unpack_signatures(std::span<const std::uint8_t> file,
                                                           std::size_t documents, Stop stop = {});

/// Size of the file of a reply, and where the pairs begin. Null when no machine could hold it.
struct ReplyLayout {
    std::uint64_t pairs_begin;
    std::uint64_t size;
};
std::optional<ReplyLayout> reply_layout(std::uint32_t documents, std::uint64_t pairs);

}  // namespace gputext
