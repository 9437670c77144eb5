#include "cpp/link/client.hpp"

#include <cerrno>
#include <cstring>
#include <type_traits>

#include "cpp/base/exception_status.hpp"
#include "cpp/link/mapped_file.hpp"

namespace gputext {
namespace {

using MaybeEvent = Result<std::optional<DaemonEvent>>;

Status gone() {
    return {ErrorCode::unavailable, "gputextd ended unexpectedly", kSeeLog};
}

/// What work() returns, or what it threw as a Status.
template <class Return, class Work>
Return guarded(Work&& work) noexcept {
    return status_or_exception([&]() -> Return { return work(); });
}

MaybeEvent some(DaemonEvent event) {
    return std::optional<DaemonEvent>(std::move(event));
}

Status could_not_connect(const std::string& path) {
    const std::string reason = std::strerror(errno);
    if (errno == EAGAIN)
        return {ErrorCode::unavailable, "too many sessions wait for gputextd",
                "Try the statement again."};
    return {ErrorCode::unavailable, "could not connect to gputextd at \"" + path + "\": " + reason};
}

/// The answer with what the reply says, and its file.
template <class Answer, class Reply>
MaybeEvent take_answer(Answer answer, Reply& reply, const Packet& packet) {
    if constexpr (std::is_same_v<Answer, std::monostate>) {
        return broken_reply("an answer to no job");
    } else if constexpr (!std::is_same_v<ReplyOf<Answer>, Reply>) {
        return broken_reply("an answer to another kind of job");
    } else {
        answer.summary = std::move(reply);
        const auto size = answer.file_size();
        if (!size.ok()) return size.status();
        auto file = MappedFile::map(packet.descriptors[0].get(), *size, Trust::sealed);
        if (!file.ok()) return broken_reply(file.status());
        answer.file = std::move(*file);
        return some(std::move(answer));
    }
}

template <class Message, class... Replies>
constexpr bool is_one_of(TypeList<Replies...>) {
    return (std::is_same_v<Message, Replies> || ...);
}
template <class Message>
constexpr bool is_value_reply = is_one_of<Message>(ValueReplies());

}  // namespace

const JobReport* report_of(const DaemonEvent& event) {
    return std::visit(
        [](const auto& alternative) -> const JobReport* {
            if constexpr (requires { alternative.summary; })
                return &alternative.summary.report;
            else
                return nullptr;
        },
        event);
}

Result<std::unique_ptr<DaemonConnection>> DaemonConnection::connect(
    const std::string& path) noexcept {
    using Connected = Result<std::unique_ptr<DaemonConnection>>;
    return guarded<Connected>([&]() -> Connected {
        const auto address = socket_address(path);
        if (!address)
            return Status(ErrorCode::invalid_argument,
                          "the path of a socket must have 1 to 107 bytes: \"" + path + "\"");
        FileDescriptor socket = new_message_socket();
        if (!socket.valid())
            return Status(ErrorCode::io_error,
                          std::string("could not make a socket: ") + std::strerror(errno));
        // On a Unix socket this succeeds or fails at once.
        if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*address),
                      sizeof *address) != 0)
            return could_not_connect(path);
        if (!peer_of_same_user(socket.get()))
            return Status(ErrorCode::unavailable,
                          "the program that listens at \"" + path + "\" runs as another user");
        std::unique_ptr<DaemonConnection> connection(new DaemonConnection(std::move(socket)));
        const Hello hello{static_cast<std::uint32_t>(getpid()), {}};
        if (Status status = connection->send(hello); !status.ok()) return status;
        return connection;
    });
}

Status DaemonConnection::send(const Message& message, std::span<const int> descriptors) {
    if (ended_) return gone();
    switch (send_packet(socket_.get(), encode(message), descriptors)) {
        case Sent::all:
            return {};
        case Sent::not_now:
        case Sent::later:
            return {ErrorCode::unavailable, "gputextd is too busy to take a message",
                    "Try the statement again."};
        default:
            return gone();
    }
}

Status DaemonConnection::check_idle() const {
    if (!std::holds_alternative<std::monostate>(expected_))
        return {ErrorCode::invalid_argument, "a job is running on this connection already"};
    if (expected_reply_ != 0)
        return {ErrorCode::invalid_argument, "a request about values is under way already"};
    return {};
}

Status DaemonConnection::send_job(const Message& message, std::span<const int> descriptors,
                                  Expected expected) {
    GPUTEXT_TRY(check_idle());
    Status status = send(message, descriptors);
    if (status.ok()) expected_ = std::move(expected);
    return status;
}

Status DaemonConnection::ask_devices() noexcept {
    return guarded<Status>([&] { return send(AskDevices()); });
}

Status DaemonConnection::ask_activity() noexcept {
    return guarded<Status>([&] { return send(AskActivity()); });
}

Status DaemonConnection::ask_counters() noexcept {
    return guarded<Status>([&] { return send(AskCounters()); });
}

Status DaemonConnection::ask_for_values(const Message& message, std::uint16_t reply,
                                        std::span<const int> descriptors) {
    GPUTEXT_TRY(check_idle());
    Status status = send(message, descriptors);
    if (status.ok()) expected_reply_ = reply;
    return status;
}

Status DaemonConnection::find_values(const FindValues& request, int pointers) noexcept {
    return guarded<Status>([&] {
        const Status status =
            ask_for_values(request, FoundValues::type, std::span<const int>(&pointers, 1));
        if (status.ok()) values_ = request.values;
        return status;
    });
}

Status DaemonConnection::add_values(std::uint64_t bytes, const FileParts& files) noexcept {
    return guarded<Status>([&]() -> Status {
        const AddValues message{bytes, files.shape()};
        if (!message.consistent()) return broken("files of another size than their values");
        return ask_for_values(message, AddedValues::type, files.descriptors());
    });
}

Status DaemonConnection::take_values(const TakeValues& request) noexcept {
    return guarded<Status>([&] { return ask_for_values(request, TakenValues::type); });
}

Status DaemonConnection::take_resident(std::uint64_t resident) noexcept {
    return guarded<Status>(
        [&] { return ask_for_values(TakeResident{resident}, TakenResident::type); });
}

Status DaemonConnection::await_values(std::uint64_t resident) noexcept {
    return guarded<Status>(
        [&] { return ask_for_values(AwaitValues{resident}, AwaitedValues::type); });
}

Status DaemonConnection::add_terms(const AddTerms& terms, const TermFiles& files) noexcept {
    return guarded<Status>([&]() -> Status {
        if (!terms.consistent()) return broken("files of another size than their words");
        const int descriptors[] = {files.bytes, files.ends, files.words};
        return ask_for_values(terms, AddedValues::type, descriptors);
    });
}

Status DaemonConnection::take_terms() noexcept {
    return guarded<Status>([&] { return ask_for_values(TakeTerms(), TakenTerms::type); });
}

Status DaemonConnection::ask_resident_tables() noexcept {
    return guarded<Status>(
        [&] { return ask_for_values(AskResidentTables(), ResidentTables::type); });
}

Status DaemonConnection::forget_values(std::uint32_t database, std::uint32_t table) noexcept {
    return guarded<Status>([&] {
        return ask_for_values(ForgetValues{database, table}, ForgottenValues::type);
    });
}

Status DaemonConnection::inject_fault(const std::string& fault) noexcept {
    return guarded<Status>([&] { return send(InjectFault{fault}); });
}

MaybeEvent DaemonConnection::receive() noexcept {
    MaybeEvent event = guarded<MaybeEvent>([&] { return receive_packet_or_none(); });
    if (!event.ok()) {
        ended_ = true;
        expected_ = {};
        expected_reply_ = 0;
    }
    return event;
}

MaybeEvent DaemonConnection::receive_packet_or_none() {
    Packet packet;
    for (;;) {
        switch (receive_packet(socket_.get(), packet)) {
            case Received::nothing:
                return std::optional<DaemonEvent>();
            case Received::closed:
                return gone();
            case Received::broken:
                return broken_reply("a message that is too large or has lost files");
            case Received::packet:
                MaybeEvent event = understand(packet);
                if (!event.ok() || event->has_value()) return event;
        }
    }
}

template <class Reply>
MaybeEvent DaemonConnection::take_value_reply(const Reply& reply, Packet& packet) {
    if (std::exchange(expected_reply_, 0) != Reply::type)
        return broken_reply("an answer to no request about values");
    if constexpr (std::is_same_v<Reply, FoundValues> || std::is_same_v<Reply, TakenTerms>)
        if (reply.values != values_) return broken_reply(kOtherRows);
    if constexpr (requires { read_reply(reply, std::move(packet.descriptors)); }) {
        auto read = read_reply(reply, std::move(packet.descriptors));
        if (!read.ok()) return read.status();
        return some(std::move(*read));
    } else {
        return some(reply);
    }
}

/// No event for the hello, which the connection keeps.
MaybeEvent DaemonConnection::understand(Packet& packet) {
    Result<Message> message = decode(packet.bytes, packet.descriptors.size());
    if (message.status().code() == ErrorCode::unavailable) {
        other_protocol_ = true;
        return Status(ErrorCode::unavailable, "gputextd speaks " + message.status().message(),
                      "It is of another release of gputext: restart the server.");
    }
    if (!message.ok()) return broken_reply(message.status().message());
    if (auto* error = std::get_if<ErrorReply>(&*message)) {
        const bool of_job = submits_job(error->request);
        if (of_job) expected_ = {};
        if (asks_for_values(error->request)) expected_reply_ = 0;
        return some(
            Failed{{error->code, std::move(error->message), std::move(error->hint)}, of_job});
    }
    if (!greeted_) {
        const auto* const hello = std::get_if<Hello>(&*message);
        if (hello == nullptr) return broken_reply("a message before the hello");
        release_ = hello->release;
        greeted_ = true;
        return std::optional<DaemonEvent>();
    }
    return std::visit(
        [&](auto& alternative) -> MaybeEvent {
            using Type = std::remove_cvref_t<decltype(alternative)>;
            if constexpr (requires { alternative.report; })
                return std::visit(
                    [&](auto expected) {
                        return take_answer(std::move(expected), alternative, packet);
                    },
                    std::exchange(expected_, {}));
            else if constexpr (is_value_reply<Type>)
                return take_value_reply(alternative, packet);
            else if constexpr (std::is_constructible_v<DaemonEvent, Type>)
                return some(std::move(alternative));
            else
                return broken_reply("a message that only a client sends");
        },
        *message);
}

}  // namespace gputext
