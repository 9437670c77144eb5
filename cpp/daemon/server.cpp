#include "cpp/daemon/server.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <type_traits>
#include <variant>

#include "cpp/daemon/background_release.hpp"
#include "cpp/daemon/device_workers.hpp"
#include "cpp/daemon/fault.hpp"
#include "cpp/daemon/listening_socket.hpp"
#include "cpp/daemon/operator_job.hpp"
#include "cpp/daemon/value_worker.hpp"
#include "cpp/link/message_socket.hpp"

namespace gputext {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kProgressEvery{250};
constexpr std::chrono::milliseconds kAcceptAgainAfter{100};
constexpr std::chrono::milliseconds kSendAgainAfter{20};
constexpr std::size_t kMostConnections = 4096;
constexpr std::size_t kMostUnreleased = 8;  // jobs that have ended, and whose files are still held
constexpr std::size_t kMostUnread = 16;     // packets that a client has asked for and does not read

const char* const kWaitingPhase = "waiting for a device";

/// The job that a message submits, or null.
std::unique_ptr<OperatorJob> operator_job(const Message& message) {
    return std::visit(
        [](const auto& submit) -> std::unique_ptr<OperatorJob> {
            if constexpr (SubmitsJob<std::remove_cvref_t<decltype(submit)>>)
                return new_job(submit);
            else
                return nullptr;
        },
        message);
}

/// A client, from its connection to the end of the last reply.
struct Connection {
    FileDescriptor socket;
    std::uint32_t pid = 0;
    bool greeted = false;
    bool closing = false;  // once all is sent
    bool mute = false;     // a fault: nothing of it is read
    bool paused = false;   // what is unsent is sent again after a while
    std::shared_ptr<DaemonJob> job;
    std::shared_ptr<ValueTask> task;  // at most one of job and task is under way
    std::shared_ptr<ValueRequest> values = std::make_shared<ValueRequest>();
    std::vector<Fault> faults;  // of its next job, or task
    std::deque<Packet> unsent;
};

RunningJob describe(const DaemonJob& job) {
    RunningJob row;
    row.pid = job.pid;
    row.operation = job.work->operation();
    row.device = job.device;
    const Execution& shown = *job.shown;
    row.phase = row.device < 0 ? kWaitingPhase : shown.phase();
    row.done = row.device < 0 ? 0 : shown.done();
    row.total = row.device < 0 ? 0 : shown.total();
    row.epoch = shown.epoch();
    row.loss = shown.loss();
    row.rows = job.work->rows();
    row.bytes = job.work->bytes();
    row.seconds = std::chrono::duration<double>(Clock::now() - job.submitted).count();
    return row;
}

/// What workers have done, on its way back to the loop, which a descriptor wakes.
template <class Work>
class EndedWork {
public:
    EndedWork() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

    int descriptor() const { return wake_.get(); }

    void put(std::shared_ptr<Work> work) {
        const std::lock_guard lock(mutex_);
        work_.push_back(std::move(work));
        const std::uint64_t one = 1;
        // Fails only when the count is at its maximum, and then the loop is woken anyway.
        [[maybe_unused]] const auto written = write(wake_.get(), &one, sizeof one);
    }

    std::vector<std::shared_ptr<Work>> take() {
        const std::lock_guard lock(mutex_);
        std::uint64_t count;
        [[maybe_unused]] const auto read_bytes = read(wake_.get(), &count, sizeof count);
        return std::exchange(work_, {});
    }

private:
    FileDescriptor wake_;
    std::mutex mutex_;
    std::vector<std::shared_ptr<Work>> work_;
};

/// Files of values take at most half of the descriptors that the process may have.
ResidentLimits resident_limits(const DaemonOptions& options) {
    ResidentLimits limits;
    limits.bytes = options.resident_memory;
    rlimit files{};
    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        limits.files = std::min<std::size_t>(limits.files, files.rlim_cur / 2);
    return limits;
}

}  // namespace

class DaemonServer::Loop {
public:
    Loop(DaemonOptions options, std::unique_ptr<ListeningSocket> listening)
        : options_(std::move(options)),
          listening_(std::move(listening)),
          epoll_(epoll_create1(EPOLL_CLOEXEC)),
          release_(kMostUnreleased),
          values_(resident_limits(options_), options_.resident_ranges,
                  [this](std::shared_ptr<ValueTask> task) { ended_tasks_.put(std::move(task)); }),
          workers_(options_.devices, options_.memory_limit,
                   [this](std::shared_ptr<DaemonJob> job) { ended_.put(std::move(job)); }) {
        for (const auto& device : options_.devices) devices_.push_back(device->info());
    }

    Status watch_own_descriptors() {
        const bool watched = watch(listening_->descriptor(), kListening, EPOLLIN) &&
                             watch(ended_.descriptor(), kEndedJobs, EPOLLIN) &&
                             watch(ended_tasks_.descriptor(), kEndedTasks, EPOLLIN);
        return watched ? Status()
                       : Status(ErrorCode::io_error,
                                std::string("could not watch a socket: ") + std::strerror(errno));
    }

    DaemonEnd run(std::span<const int> told_to_end) {
        for (const int descriptor : told_to_end) watch(descriptor, kToldToEnd, EPOLLIN);
        while (!end_) wait_and_handle();
        say_goodbye();
        return *end_;
    }

    bool stop_devices(std::chrono::milliseconds patience) {
        const auto end = Clock::now() + patience;
        const bool stopped = workers_.stop(patience);
        const auto rest = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
        return values_.stop(std::max(std::chrono::milliseconds(0), rest)) && stopped;
    }

private:
    // What an event is about: one of these, or a connection by its number.
    static constexpr std::uint64_t kListening = 0;
    static constexpr std::uint64_t kEndedJobs = 1;
    static constexpr std::uint64_t kEndedTasks = 2;
    static constexpr std::uint64_t kToldToEnd = 3;
    static constexpr std::uint64_t kFirstConnection = 4;

    bool watch(int descriptor, std::uint64_t what, std::uint32_t events) {
        epoll_event event{};
        event.events = events;
        event.data.u64 = what;
        return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0;
    }

    void watch_again(const Connection& connection, std::uint64_t number) {
        epoll_event event{};
        event.events =
            EPOLLIN | EPOLLRDHUP | (connection.unsent.empty() || connection.paused ? 0u : EPOLLOUT);
        if (connection.closing || connection.mute) event.events &= ~EPOLLIN;
        event.data.u64 = number;
        epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, connection.socket.get(), &event);
    }

    // ---- The loop ----

    void wait_and_handle() {
        epoll_event events[64];
        const int count = epoll_wait(epoll_.get(), events, std::size(events), patience());
        for (int i = 0; i < count && !end_; ++i) handle_or_drop(events[i]);
        if (accept_again_ && Clock::now() >= *accept_again_) {
            accept_again_.reset();
            watch(listening_->descriptor(), kListening, EPOLLIN);
        }
        if (send_again_ && Clock::now() >= *send_again_) send_paused();
        if (jobs_ > 0 && Clock::now() >= next_progress_) send_progress();
        end_for_lost_devices();
    }

    /// Milliseconds until there is something to do without an event; -1: nothing.
    int patience() const {
        std::optional<Clock::time_point> first = accept_again_;
        if (send_again_) first = first ? std::min(*first, *send_again_) : *send_again_;
        if (jobs_ > 0) first = first ? std::min(*first, next_progress_) : next_progress_;
        if (!first) return -1;
        const auto wait = std::chrono::ceil<std::chrono::milliseconds>(*first - Clock::now());
        return static_cast<int>(std::max<std::int64_t>(0, wait.count()));
    }

    /// A message that there is no memory for costs its connection.
    void handle_or_drop(const epoll_event& event) {
        try {
            handle(event);
        } catch (const std::bad_alloc&) {
            if (event.data.u64 < kFirstConnection) throw;
            drop(event.data.u64);
        }
    }

    void handle(const epoll_event& event) {
        const std::uint64_t about = event.data.u64;  // the event itself is not aligned for it
        if (about == kListening) return accept_all();
        if (about == kEndedJobs) return deliver_ended_jobs();
        if (about == kEndedTasks) return deliver_ended_tasks();
        if (about == kToldToEnd) {
            end_ = DaemonEnd::told;
            return;
        }
        if (connections_.find(about) == connections_.end()) return;
        if ((event.events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) return drop(about);
        if ((event.events & EPOLLOUT) != 0) flush(about);
        if ((event.events & EPOLLIN) != 0) read_from(about);  // also when it is gone
    }

    // ---- Connections ----

    void accept_all() {
        for (;;) {
            FileDescriptor socket(
                accept4(listening_->descriptor(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
            if (socket.valid()) {
                welcome(std::move(socket));
            } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
                return;
            } else if (errno != EINTR && errno != ECONNABORTED) {
                return pause_accepting();
            }
        }
    }

    /// No descriptors or memory: clients wait in the socket's queue meanwhile.
    void pause_accepting() {
        log(LogLevel::warning,
            std::string("could not accept a connection: ") + std::strerror(errno));
        epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listening_->descriptor(), nullptr);
        accept_again_ = Clock::now() + kAcceptAgainAfter;
    }

    void welcome(FileDescriptor socket) {
        const auto pid = peer_of_same_user(socket.get());
        if (!pid) return log(LogLevel::warning, "refused a connection of another user");
        if (connections_.size() >= kMostConnections)
            return log(LogLevel::warning, "refused a connection: there are too many");
        const Fault fault = std::exchange(accept_fault_, Fault{});
        if (!suffer_at_accept(fault)) return;
        const std::uint64_t number = next_connection_++;
        Connection& connection = connections_[number];
        connection.socket = std::move(socket);
        connection.pid = static_cast<std::uint32_t>(*pid);
        connection.mute = fault.kind == FaultKind::hang || fault.kind == FaultKind::stuck;
        if (!watch(connection.socket.get(), number, EPOLLIN | EPOLLRDHUP)) return drop(number);
        Packet hello{encode(Hello{static_cast<std::uint32_t>(getpid()), options_.release}), {}};
        break_reply(fault, hello);
        if (connection.mute)
            watch_again(connection, number);
        else
            send(number, std::move(hello));
    }

    /// False when the connection is to be closed without a word.
    bool suffer_at_accept(Fault fault) {
        Execution nobodys(1);
        nobodys.request_stop();  // a fault that lasts must not hold the others up
        if (fault.kind == FaultKind::crash || fault.kind == FaultKind::abort)
            return suffer(fault, FaultPoint::accept, nobodys).ok();
        return fault.kind != FaultKind::no_reply;
    }

    void drop(std::uint64_t number) {
        const auto found = connections_.find(number);
        if (found == connections_.end()) return;
        std::shared_ptr<DaemonJob> job = std::move(found->second.job);
        std::shared_ptr<ValueTask> task = std::move(found->second.task);
        if (task == nullptr && !found->second.values->chunks.empty())
            release_.release(std::move(found->second.values));
        connections_.erase(found);
        if (job != nullptr) abandon(std::move(job));
        if (task != nullptr && values_.cancel(task)) release_.release(std::move(task));
    }

    void abandon(std::shared_ptr<DaemonJob> job) {
        if (!workers_.cancel(job)) return;  // else it comes back as ended
        note_failures(*job);
        ++counters_.cancelled;
        forget(job);
        release_.release(std::move(job));
    }

    void forget(const std::shared_ptr<DaemonJob>& job) {
        std::erase(unfinished_, job);
        jobs_ = unfinished_.size();
    }

    void read_from(std::uint64_t number) {
        Packet packet;
        for (;;) {
            const auto connection = connections_.find(number);
            if (connection == connections_.end() || connection->second.closing || end_) return;
            if (connection->second.unsent.size() >= kMostUnread) return drop(number);
            switch (receive_packet(connection->second.socket.get(), packet)) {
                case Received::nothing:
                    return;
                case Received::closed:
                    return drop(number);
                case Received::broken:
                    refuse(number, {ErrorCode::invalid_argument,
                                    "a message that is too large or has lost files"});
                    break;
                case Received::packet:
                    understand(number, connection->second, packet);
            }
        }
    }

    void understand(std::uint64_t number, Connection& connection, Packet& packet) {
        Result<Message> message = decode(packet.bytes, packet.descriptors.size());
        if (!message.ok()) return refuse(number, message.status());
        if (!connection.greeted) {
            connection.greeted = std::holds_alternative<Hello>(*message);
            if (!connection.greeted)
                refuse(number, {ErrorCode::invalid_argument, "a message before the hello"});
            return;
        }
        if (auto work = operator_job(*message))
            return start_job(number, connection, std::move(work), std::move(packet.descriptors));
        if (asks_for_values(*message))
            return start_task(number, connection, std::move(*message),
                              std::move(packet.descriptors));
        if (const auto* inject = std::get_if<InjectFault>(&*message))
            return inject_fault(number, connection, inject->fault);
        if (std::holds_alternative<AskDevices>(*message))
            return send(number, DeviceList{devices_, options_.why_no_devices});
        if (std::holds_alternative<AskActivity>(*message)) return send(number, activity());
        if (std::holds_alternative<AskCounters>(*message)) return send(number, counters_);
        refuse(number, {ErrorCode::invalid_argument, "a message that only a server sends"});
    }

    /// For clients that do not speak the protocol: says so and closes.
    void refuse(std::uint64_t number, const Status& status) {
        const std::string message = "gputextd received " + status.message();
        log(LogLevel::warning, message);
        connections_.at(number).closing = true;
        send(number, ErrorReply{status.code(), message, status.hint()});
    }

    void send(std::uint64_t number, const Message& message) {
        send(number, Packet{encode(message), {}});
    }

    void send(std::uint64_t number, Packet packet) {
        connections_.at(number).unsent.push_back(std::move(packet));
        flush(number);
    }

    /// The connection may be gone afterwards.
    void flush(std::uint64_t number) {
        Connection& connection = connections_.at(number);
        connection.paused = false;
        while (!connection.unsent.empty()) {
            // An empty packet is a fault: no reply at all.
            if (connection.unsent.front().bytes.empty()) return drop(number);
            const Sent sent = send_packet(connection.socket.get(), connection.unsent.front());
            if (sent == Sent::closed) return drop(number);
            connection.paused = sent == Sent::later;
            if (connection.paused && !send_again_) send_again_ = Clock::now() + kSendAgainAfter;
            if (sent != Sent::all) break;
            connection.unsent.pop_front();
        }
        if (connection.closing && connection.unsent.empty()) return drop(number);
        watch_again(connection, number);
    }

    void send_paused() {
        send_again_.reset();
        std::vector<std::uint64_t> paused;
        for (const auto& [number, connection] : connections_)
            if (connection.paused) paused.push_back(number);
        for (const std::uint64_t number : paused) flush(number);
    }

    // ---- Jobs ----

    void start_job(std::uint64_t number, Connection& connection, std::unique_ptr<OperatorJob> work,
                   std::vector<FileDescriptor> files) {
        if (!idle(number, connection)) return;
        if (devices_.empty())
            return send(number, error_reply(work->request_type(),
                                            {ErrorCode::unavailable, options_.why_no_devices}));
        if (work->limits().device >= static_cast<std::int32_t>(devices_.size()))
            return send(number, error_reply(work->request_type(), {ErrorCode::invalid_argument,
                                                                   "there is no such device"}));
        auto job = std::make_shared<DaemonJob>(options_.host_threads, std::move(work));
        job->files = std::move(files);
        job->chunks = &values_.chunks();
        job->faults = take_faults(connection, of_job);
        job->connection = number;
        job->pid = connection.pid;
        connection.job = job;
        if (unfinished_.empty()) next_progress_ = Clock::now() + kProgressEvery;
        unfinished_.push_back(job);
        jobs_ = unfinished_.size();
        workers_.submit(std::move(job));
    }

    /// Whether the connection may begin a job or a task; if not, it is refused.
    bool idle(std::uint64_t number, const Connection& connection) {
        if (connection.job == nullptr && connection.task == nullptr) return true;
        refuse(number, {ErrorCode::invalid_argument,
                        connection.job != nullptr ? "a request before the last job ended"
                                                  : "a request before the last one was answered"});
        return false;
    }

    /// Those of the connection's faults that it is to suffer now.
    template <class Which>
    static std::vector<Fault> take_faults(Connection& connection, const Which& which) {
        std::vector<Fault>& all = connection.faults;
        const auto taken = std::stable_partition(all.begin(), all.end(),
                                                 [&](const Fault& fault) { return !which(fault); });
        std::vector<Fault> now(taken, all.end());
        all.erase(taken, all.end());
        return now;
    }

    void start_task(std::uint64_t number, Connection& connection, Message message,
                    std::vector<FileDescriptor> files) {
        if (!idle(number, connection)) return;
        auto task = std::make_shared<ValueTask>(options_.host_threads, std::move(message));
        task->files = std::move(files);
        task->faults = take_faults(connection, [&message = task->message](const Fault& fault) {
            return suffers(message, fault);
        });
        task->connection = number;
        task->request = connection.values;
        connection.task = task;
        values_.submit(std::move(task));
    }

    void deliver_ended_tasks() {
        for (std::shared_ptr<ValueTask>& task : ended_tasks_.take()) {
            const auto connection = connections_.find(task->connection);
            if (connection != connections_.end()) {
                connection->second.task = nullptr;
                send(connection->first, std::move(task->reply));
            } else {
                // The last to hold what it found.
                release_.release(std::move(task));
            }
        }
    }

    void deliver_ended_jobs() {
        for (std::shared_ptr<DaemonJob>& job : ended_.take()) {
            note_failures(*job);
            count(*job);
            forget(job);
            const auto connection = connections_.find(job->connection);
            if (connection != connections_.end()) {
                connection->second.job = nullptr;
                send(connection->first, std::move(job->reply));
            }
            release_.release(std::move(job));
        }
    }

    /// Every loss of a device is in one job.
    void note_failures(const DaemonJob& job) {
        for (const DeviceFailure& failure : job.parts.failures) {
            const bool lost = failure.status.code() == ErrorCode::device_lost;
            if (lost) lost_devices_.insert(failure.device);
            log(LogLevel::warning,
                "device " + std::to_string(failure.device) +
                    (lost ? " was lost in a job of process " : " failed in a job of process ") +
                    std::to_string(job.pid) + ": " + failure.status.message());
        }
    }

    /// At once when there is no other device, else when there is no job any more.
    void end_for_lost_devices() {
        if (end_ || lost_devices_.empty()) return;
        if (unfinished_.empty() || lost_devices_.size() == devices_.size())
            end_ = DaemonEnd::device_lost;
    }

    void count(const DaemonJob& job) {
        counters_.milliseconds += job.milliseconds;
        counters_.retries += job.retries;
        if (job.status.ok()) {
            ++counters_.jobs;
            counters_.rows += job.work->rows();
            counters_.bytes += job.work->bytes();
        } else if (job.status.code() == ErrorCode::cancelled) {
            ++counters_.cancelled;
        } else {
            ++counters_.failures;
            log(LogLevel::warning,
                "job of process " + std::to_string(job.pid) + " failed: " + job.status.message());
        }
    }

    /// A client that does not read gets no more of it.
    void send_progress() {
        next_progress_ = Clock::now() + kProgressEvery;
        for (const std::shared_ptr<DaemonJob>& job : std::vector(unfinished_)) {
            const auto connection = connections_.find(job->connection);
            if (connection == connections_.end() || !connection->second.unsent.empty()) continue;
            RunningJob row = describe(*job);
            send(connection->first, Progress{std::move(row.phase), row.done, row.total, row.device,
                                             row.epoch, row.loss});
        }
    }

    ActivityList activity() const {
        ActivityList list;
        for (const std::shared_ptr<DaemonJob>& job : unfinished_)
            if (list.jobs.size() < kMaxActivity) list.jobs.push_back(describe(*job));
        return list;
    }

    void inject_fault(std::uint64_t number, Connection& connection, const std::string& text) {
        if (!options_.allow_faults)
            return send(number, error_reply(InjectFault::type,
                                            {ErrorCode::invalid_argument,
                                             "gputextd was not started to allow faults"}));
        const Result<Fault> fault = parse_fault(text);
        if (!fault.ok()) return send(number, error_reply(InjectFault::type, fault.status()));
        if (fault->kind == FaultKind::lift)
            lift_faults();
        else if (fault->point == FaultPoint::accept)
            accept_fault_ = *fault;
        else
            connection.faults.push_back(*fault);
    }

    // ---- The end ----

    /// Every client that waits gets an error; sockets of slow readers are closed unread.
    void say_goodbye() {
        listening_.reset();
        const Status status = *end_ == DaemonEnd::told
                                  ? Status(ErrorCode::unavailable, "gputextd is shutting down")
                                  : ends_for_lost_device();
        for (const auto& [number, connection] : std::exchange(connections_, {})) {
            if (connection.job == nullptr && connection.task == nullptr) continue;
            if (connection.job != nullptr) workers_.cancel(connection.job);
            if (connection.task != nullptr) values_.cancel(connection.task);
            const std::uint16_t request = connection.job != nullptr
                                              ? connection.job->work->request_type()
                                              : type_of(connection.task->message);
            send_packet(connection.socket.get(), encode(error_reply(request, status)), {});
        }
    }

    void log(LogLevel level, const std::string& message) { options_.log(level, message); }

    DaemonOptions options_;
    std::unique_ptr<ListeningSocket> listening_;
    FileDescriptor epoll_;
    std::vector<DeviceInfo> devices_;
    std::map<std::uint64_t, Connection> connections_;
    std::uint64_t next_connection_ = kFirstConnection;
    std::vector<std::shared_ptr<DaemonJob>> unfinished_;  // in the order of their submission
    std::size_t jobs_ = 0;
    CounterValues counters_;
    std::set<std::int32_t> lost_devices_;
    Fault accept_fault_;
    std::optional<Clock::time_point> accept_again_;
    std::optional<Clock::time_point> send_again_;
    Clock::time_point next_progress_;
    std::optional<DaemonEnd> end_;
    BackgroundRelease release_;
    EndedWork<DaemonJob> ended_;
    EndedWork<ValueTask> ended_tasks_;
    ValueWorker values_;     // its thread uses what is above
    DeviceWorkers workers_;  // the same, and the values
};

DaemonServer::DaemonServer(std::unique_ptr<Loop> loop) : loop_(std::move(loop)) {}
DaemonServer::~DaemonServer() = default;

Result<std::unique_ptr<DaemonServer>> DaemonServer::start(DaemonOptions options) {
    try {
        auto listening = ListeningSocket::open(options.socket_path);
        if (!listening.ok()) return listening.status();
        auto loop = std::make_unique<Loop>(std::move(options), std::move(*listening));
        if (Status status = loop->watch_own_descriptors(); !status.ok()) return status;
        return std::unique_ptr<DaemonServer>(new DaemonServer(std::move(loop)));
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    } catch (const std::system_error&) {
        return Status(ErrorCode::out_of_memory, "could not start a thread");
    }
}

DaemonEnd DaemonServer::run(std::span<const int> told_to_end) {
    try {
        return loop_->run(told_to_end);
    } catch (const std::bad_alloc&) {
        return DaemonEnd::out_of_memory;
    }
}

bool DaemonServer::stop_devices(unsigned milliseconds) {
    return loop_->stop_devices(std::chrono::milliseconds(milliseconds));
}

}  // namespace gputext
