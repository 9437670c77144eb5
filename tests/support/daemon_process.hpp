// tests/support/daemon_process.hpp - starts a gputextd for a test, with clients for it

#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cpp/link/client.hpp"
#include "cpp/link/message_socket.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::testing {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// True as soon as the condition holds; false when it does not within this time.
inline bool soon(const std::function<bool()>& condition,
                 milliseconds patience = milliseconds(60'000)) {
    for (const auto end = Clock::now() + patience; Clock::now() < end;) {
        if (condition()) return true;
        std::this_thread::sleep_for(milliseconds(1));
    }
    return condition();
}

/// The numbers of fake devices that a test is run with: the first and the last alone, where tests are
/// not long or are sanitized, for the time it takes.
inline std::vector<int> numbers_of_devices(std::vector<int> numbers) {
    if (kFewer) numbers.erase(numbers.begin() + 1, numbers.end() - 1);
    return numbers;
}

inline std::size_t open_descriptors(pid_t pid) {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd"))
        ++count;
    return count;
}

/// A folder that goes with its owner.
class Folder {
public:
    Folder() {
        char name[] = "/tmp/gputextd-test-XXXXXX";
        path_ = mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;

    std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    bool empty() const { return std::filesystem::is_empty(path_); }

private:
    std::string path_;
};

/// The program, run as the supervisor runs it; killed with its owner.
class DaemonProcess {
public:
    using Arguments = std::vector<std::string>;

    DaemonProcess(const std::string& socket, Arguments arguments) {
        int ends[2];
        EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
        supervisor_ = FileDescriptor(ends[1]);
        arguments.insert(arguments.begin(), {"gputextd", "--socket=" + socket, "--threads=2"});
        arguments.push_back("--supervisor-fd=" + std::to_string(ends[0]));
        pid_ = fork();
        if (pid_ == 0) run(ends[0], arguments);
        close(ends[0]);
    }
    ~DaemonProcess() {
        if (pid_ <= 0) return;
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    DaemonProcess(const DaemonProcess&) = delete;

    pid_t pid() const { return pid_; }
    void send_signal(int number) const { kill(pid_, number); }
    void close_supervisor_pipe() { supervisor_.reset(); }

    /// What waitpid says, or none when it does not end within a minute.
    std::optional<int> wait() {
        int status = 0;
        if (!soon([&] { return waitpid(pid_, &status, WNOHANG) == pid_; })) return std::nullopt;
        pid_ = -1;
        return status;
    }
    /// The exit code, or -1 when it was another end.
    int exit_code() {
        const auto status = wait();
        return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
    }
    int ending_signal() {
        const auto status = wait();
        return status && WIFSIGNALED(*status) ? WTERMSIG(*status) : -1;
    }

private:
    [[noreturn]] static void run(int supervisor, const Arguments& arguments) {
        fcntl(supervisor, F_SETFD, 0);
        umask(0);
        if (std::getenv("GPUTEXT_TEST_LOG") == nullptr)
            dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        std::vector<char*> pointers;
        for (const std::string& argument : arguments)
            pointers.push_back(const_cast<char*>(argument.c_str()));
        pointers.push_back(nullptr);
        execv(GPUTEXTD, pointers.data());
        _exit(127);
    }

    pid_t pid_ = -1;
    FileDescriptor supervisor_;
};

/// Connects as soon as a server listens.
inline std::unique_ptr<DaemonConnection> connect_to(const std::string& socket) {
    std::unique_ptr<DaemonConnection> connection;
    EXPECT_TRUE(soon([&] {
        auto result = DaemonConnection::connect(socket);
        if (result.ok()) connection = std::move(*result);
        return result.ok();
    }));
    return connection;
}

inline bool readable(const DaemonConnection& connection, milliseconds patience) {
    pollfd fd{connection.fd(), POLLIN, 0};
    return poll(&fd, 1, static_cast<int>(patience.count())) == 1;
}

/// The next event that is no progress.
inline Result<DaemonEvent> next_event(DaemonConnection& connection) {
    for (const auto end = Clock::now() + std::chrono::seconds(60); Clock::now() < end;) {
        readable(connection, milliseconds(100));
        auto event = connection.receive();
        if (!event.ok()) return event.status();
        if (event->has_value() && !std::holds_alternative<Progress>(**event))
            return std::move(**event);
    }
    return Status(ErrorCode::internal_error, "no event for a long time");
}

/// The next event, which is to be of this kind.
template <class Event>
Result<Event> next(DaemonConnection& connection) {
    auto event = next_event(connection);
    if (!event.ok()) return event.status();
    if (auto* wanted = std::get_if<Event>(&*event)) return std::move(*wanted);
    if (auto* failed = std::get_if<Failed>(&*event)) return failed->status;
    return Status(ErrorCode::internal_error, "an event of another kind");
}

/// What gputextd runs, and what waits there; `watcher` has no job of its own.
inline std::vector<RunningJob> running_jobs(DaemonConnection& watcher) {
    EXPECT_TRUE(watcher.ask_activity().ok());
    const auto activity = next<ActivityList>(watcher);
    EXPECT_TRUE(activity.ok());
    return activity.ok() ? activity->jobs : std::vector<RunningJob>();
}

/// Lets so many devices wait for each other in the next job of the connection, so that each does a
/// part of it.
inline void gather_devices(DaemonConnection& connection, std::ptrdiff_t devices) {
    ASSERT_TRUE(connection.inject_fault("in_job:gather:" + std::to_string(devices)).ok());
}

/// Lets all jobs and requests go on that a fault holds.
inline void lift_faults(DaemonConnection& connection) {
    ASSERT_TRUE(connection.inject_fault("in_job:lift").ok());
}

/// Lets the first or the last of gputextd's devices fail in every way, each in the middle of a job
/// that is shared out among all of them, and all of them in one. `job` compares its answer with the
/// right one and returns the report. gputextd ends, since a device is lost.
inline void expect_others_to_stand_in(DaemonProcess& daemon, DaemonConnection& connection,
                                      int devices, const std::function<Result<JobReport>()>& job) {
    const auto inject = [&](const std::string& failure, int device) {
        const std::string fault = "in_job:" + failure + ":" + std::to_string(device);
        ASSERT_TRUE(connection.inject_fault(fault).ok());
    };
    const auto expect_answer_without = [&](const std::string& failure, int device) {
        SCOPED_TRACE(failure + " of device " + std::to_string(device));
        gather_devices(connection, devices);
        inject(failure, device);
        const Result<JobReport> report = job();
        if (devices == 1) {
            EXPECT_FALSE(report.ok());
            return;
        }
        ASSERT_TRUE(report.ok()) << report.status().message();
        const std::string& names = report->device_name;
        EXPECT_EQ(std::count(names.begin(), names.end(), ',') + 2, devices) << names;
        EXPECT_EQ(names.find("fake device " + std::to_string(device)), std::string::npos) << names;
        EXPECT_NE(report->device, device);
        EXPECT_EQ(report->retries, failure == "out_of_memory:5" ? 5u : 1u);
    };
    ASSERT_NO_FATAL_FAILURE(expect_answer_without("device_error:1", 0));
    ASSERT_NO_FATAL_FAILURE(expect_answer_without("out_of_memory:5", devices - 1));
    gather_devices(connection, devices);
    for (int device = 0; device < devices; ++device) inject("device_error:1", device);
    EXPECT_EQ(job().status().code(), ErrorCode::device_error);
    ASSERT_NO_FATAL_FAILURE(expect_answer_without("device_lost:1", devices - 1));
    EXPECT_EQ(daemon.exit_code(), 3);
}

/// A client that says what it likes.
class RawClient {
public:
    explicit RawClient(const std::string& path) : socket_(new_message_socket()) {
        const auto address = socket_address(path);
        EXPECT_TRUE(soon([&] {
            return ::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&*address),
                             sizeof *address) == 0;
        }));
    }

    Sent send(std::span<const std::uint8_t> bytes, std::span<const int> descriptors = {}) {
        return send_packet(socket_.get(), bytes, descriptors);
    }

    /// All that comes until the server closes; none when it does not.
    std::optional<std::vector<Message>> messages_until_close() {
        std::vector<Message> messages;
        const bool closed = soon([&] {
            Packet packet;
            for (;;) {
                const Received received = receive_packet(socket_.get(), packet);
                if (received != Received::packet) return received == Received::closed;
                auto message = decode(packet.bytes, packet.descriptors.size());
                if (message.ok()) messages.push_back(std::move(*message));
            }
        });
        return closed ? std::optional(std::move(messages)) : std::nullopt;
    }

private:
    FileDescriptor socket_;
};

}  // namespace gputext::testing
