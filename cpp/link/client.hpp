// cpp/link/client.hpp - client of gputextd, for a database session
//
// For a database session: it never blocks, starts no thread, raises no signal and lets no exception
// out. Whatever gputextd sends, the worst outcome is a Status.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "cpp/base/exception_status.hpp"
#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/message_socket.hpp"
#include "cpp/link/operators.hpp"
#include "cpp/link/protocol.hpp"
#include "cpp/link/resident_answers.hpp"
#include "cpp/link/type_list.hpp"

namespace gputext {

/// The server's word that a job failed, or that it will not do something else that was asked.
struct Failed {
    Status status;
    bool of_job;  // the job has ended, and another one may be submitted
};

using DaemonEvent =
    VariantOf<Join<TypeList<Progress, Failed, DeviceList, ActivityList, CounterValues, ValuesFound,
                            AddedValues, ValuesTaken, ResidentTaken, TermsTaken, ResidentTableList,
                            ForgottenValues, AwaitedValues>,
                   Answers>>;

/// What an event says of a job that has been answered; null for any other event.
const JobReport* report_of(const DaemonEvent& event);

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
    /// What gputextd said in its hello: see Hello. Empty before.
    const std::string& release() const { return release_; }
    /// Whether receive() has ended with an error since gputextd speaks another version of the
    /// protocol.
    bool other_protocol() const { return other_protocol_; }

    // Each of these sends one message. An error that is unavailable means that the connection is of
    // no use any more; what the server may have said about it is still to be received.

    /// Submits a job, one at a time; a request of the list Operators. Copies into files what lies
    /// in none. Errors: unavailable; invalid_argument; cancelled; out_of_memory; io_error when the
    /// system gives no descriptor.
    template <class Request>
    Status submit(const Request& request, Stop stop = {}) noexcept {
        return status_or_exception([&]() -> Status {
            typename Request::Packed packed;
            packed.message.limits = request.limits;
            if (Status status = request.pack(packed, stop); !status.ok()) return status;
            return send_job(packed.message, packed.files.descriptors(), std::move(packed.expected));
        });
    }
    Status ask_devices() noexcept;
    Status ask_activity() noexcept;
    Status ask_counters() noexcept;

    // Resident values (resident_values.hpp): one request at a time, and none while a job
    // runs. Each is answered by the event of its name, or Failed, which is not of a job. Error
    // besides: invalid_argument for one that must not come now, or files that cannot be right.

    /// `pointers` has request.values of ValuePointer, and stays the caller's: ValuesFound.
    Status find_values(const FindValues& request, int pointers) noexcept;
    /// The values that were missing, `bytes` in all, in sealed files, which stay the caller's:
    /// AddedValues.
    Status add_values(std::uint64_t bytes, const FileParts& files) noexcept;
    /// ValuesTaken.
    Status take_values(const TakeValues& request = {}) noexcept;
    /// The values that gputextd calls so: ResidentTaken.
    Status take_resident(std::uint64_t resident) noexcept;
    /// AwaitedValues.
    Status await_values(std::uint64_t resident) noexcept;
    /// The terms of texts that were missing; the files stay the caller's: AddedValues.
    Status add_terms(const AddTerms& terms, const TermFiles& files) noexcept;
    /// TermsTaken.
    Status take_terms() noexcept;
    /// ResidentTableList.
    Status ask_resident_tables() noexcept;
    /// `table` 0: of all tables of the database. ForgottenValues.
    Status forget_values(std::uint32_t database, std::uint32_t table) noexcept;

    /// For the next job of this connection, or the next connection: see cpp/daemon/fault.hpp.
    Status inject_fault(const std::string& fault) noexcept;

    /// The next event, or none so far. To be called until there is none whenever fd() is readable.
    /// Errors, after which the connection is of no use: unavailable when gputextd ended, is of
    /// another version, or has sent what it must not; out_of_memory.
    Result<std::optional<DaemonEvent>> receive() noexcept;

private:
    explicit DaemonConnection(FileDescriptor socket) : socket_(std::move(socket)) {}

    /// What the answer to the job that is running has to be.
    using Expected = VariantOf<Join<TypeList<std::monostate>, Answers>>;

    Status send(const Message& message, std::span<const int> descriptors = {});
    Status send_job(const Message& message, std::span<const int> descriptors, Expected expected);
    /// A request about resident values, which the server answers by a message of `reply`.
    Status ask_for_values(const Message& message, std::uint16_t reply,
                          std::span<const int> descriptors = {});
    Result<std::optional<DaemonEvent>> receive_packet_or_none();
    Result<std::optional<DaemonEvent>> understand(Packet& packet);
    template <class Reply>
    Result<std::optional<DaemonEvent>> take_value_reply(const Reply& reply, Packet& packet);
    /// Ok when another request that is alone may be sent.
    Status check_idle() const;

    FileDescriptor socket_;
    bool greeted_ = false;
    bool other_protocol_ = false;
    std::string release_;
    bool ended_ = false;  // receive() has returned an error
    Expected expected_;
    std::uint16_t expected_reply_ = 0;  // type of the answer to a request about values; 0: to none
    std::uint32_t values_ = 0;          // that the last FindValues asked for
};

}  // namespace gputext
