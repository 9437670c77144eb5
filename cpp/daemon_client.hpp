// cpp/daemon_client.hpp - a process' connection to gputextd
//
// For a database session: it never blocks, starts no thread, raises no signal and lets no exception
// out. Whatever gputextd sends, the worst outcome is a Status.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "cpp/file_descriptor.hpp"
#include "cpp/mapped_file.hpp"
#include "cpp/message_socket.hpp"
#include "cpp/near_duplicates.hpp"
#include "cpp/protocol.hpp"

namespace gputext {

/// What to compute. Files and arrays stay the caller's and may go after submit().
struct NearDuplicatesRequest {
    NearDuplicateParameters parameters;     // simd is the server's own choice
    std::uint64_t device_memory_limit = 0;  // bytes; 0 for as much as the device gives
    std::int32_t device = -1;               // number of the only device to use, or -1 for any
    int bytes_descriptor = -1;     // a MemoryFile after seal(), or a plain file nobody changes
    std::uint64_t bytes_size = 0;  // of the whole file
    std::span<const Extent> extents;
    CharacterLengths characters = CharacterLengths::single_byte();
    GivenSignatures signatures;  // empty, or one a document
};

/// The answer to a job, still in the file that it came in.
struct NearDuplicatesAnswer {
    NearDuplicatesReply summary;
    MappedFile file;

    /// Checks and copies it, O(documents + pairs). Errors: unavailable for an answer that is none;
    /// cancelled; out_of_memory.
    Result<NearDuplicates> read(Stop stop = {}) const noexcept;
};

/// The server's word that a job failed, or that it will not do something else that was asked.
struct Failed {
    Status status;
    bool of_job;  // the job has ended, and another one may be submitted
};

using DaemonEvent =
    std::variant<Progress, NearDuplicatesAnswer, Failed, DeviceList, ActivityList, CounterValues>;

class DaemonConnection {
public:
    /// Connects and says hello, without waiting for the server's: requests may follow at once.
    /// Errors: unavailable when nobody listens there, another user does, or so many wait that it
    /// should be tried again; invalid_argument for the path; out_of_memory, io_error.
    static Result<std::unique_ptr<DaemonConnection>> connect(const std::string& path) noexcept;

    /// Closes, which cancels a job that is running.
    ~DaemonConnection() = default;
    DaemonConnection(const DaemonConnection&) = delete;
    DaemonConnection& operator=(const DaemonConnection&) = delete;

    /// Readable when receive() may have something.
    int fd() const { return socket_.get(); }

    /// Whether gputextd has answered the hello. It reads nothing else before, so that a job sent on
    /// a connection that ends without it has not been looked at.
    bool greeted() const { return greeted_; }

    // Each of these sends one message. An error that is unavailable means that the connection is of
    // no use any more; what the server may have said about it is still to be received.

    /// One job at a time. Copies extents and signatures into memory files. Errors: unavailable;
    /// cancelled; out_of_memory; io_error when the system gives no descriptor.
    Status submit(const NearDuplicatesRequest& request, Stop stop = {}) noexcept;
    Status ask_devices() noexcept;
    Status ask_activity() noexcept;
    Status ask_counters() noexcept;
    /// For the next job of this connection, or the next connection: see cpp/fault.hpp.
    Status inject_fault(const std::string& fault) noexcept;

    /// The next event, or none so far. To be called until there is none whenever fd() is readable.
    /// Errors, after which the connection is of no use: unavailable when gputextd ended, is of
    /// another version, or has sent what it must not; out_of_memory.
    Result<std::optional<DaemonEvent>> receive() noexcept;

private:
    explicit DaemonConnection(FileDescriptor socket) : socket_(std::move(socket)) {}

    Status send(const Message& message, std::span<const int> descriptors = {});
    Status send_job(const NearDuplicatesRequest& request, Stop stop);
    Result<std::optional<DaemonEvent>> receive_packet_or_none();
    Result<std::optional<DaemonEvent>> understand(Packet& packet);
    Result<std::optional<DaemonEvent>> take_answer(const NearDuplicatesReply& reply,
                                                   const Packet& packet);

    FileDescriptor socket_;
    bool greeted_ = false;
    bool ended_ = false;                      // receive() has returned an error
    std::optional<std::uint32_t> documents_;  // of the job that is running
};

}  // namespace gputext
