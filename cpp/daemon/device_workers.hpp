// cpp/daemon/device_workers.hpp - job queue of gputextd, with one thread for each device

#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cpp/daemon/device.hpp"
#include "cpp/daemon/fault.hpp"
#include "cpp/daemon/operator_job.hpp"
#include "cpp/link/message_socket.hpp"

namespace gputext {

/// A request on its way to a reply. Written by the server before it is handed to a worker, then by
/// that worker alone until it is handed back; atomics and the execution may be read meanwhile.
struct DaemonJob {
    DaemonJob(unsigned threads, std::unique_ptr<OperatorJob> asked)
        : work(std::move(asked)), execution(threads) {}

    using Clock = std::chrono::steady_clock;

    std::unique_ptr<OperatorJob> work;
    std::vector<FileDescriptor> files;
    const ResidentChunks* chunks = nullptr;  // that the request may name
    std::vector<Fault> faults;
    std::uint64_t connection = 0;
    std::uint32_t pid = 0;  // of the client
    Clock::time_point submitted = Clock::now();

    Execution execution;
    std::atomic<std::int32_t> device{-1};  // -1 while it waits; the first, where there are several

    Status status;  // of the whole job
    Packet reply;   // to send, also for an error; no bytes at all: none
    std::uint64_t milliseconds = 0;
    std::uint64_t retries = 0;
};

/// A job on its way through the parts that OperatorJob::prepare() made of it.
struct PartedJob {
    DaemonJob& job;
    std::size_t parts;
    std::size_t next = 0;     // the first part that nobody has taken
    std::size_t running = 0;  // parts on other devices than the job's own
    Status status;            // the first error that is not cancelled, or cancelled
    std::uint64_t retries = 0;
    std::vector<bool> devices;  // that took part
};

/// One thread a device takes jobs in the order of their submission, each device those that it may
/// run. A job waits until a device is free: devices have one memory each, and jobs are planned for
/// all of it. A job of several parts has the device that took it; others that are free take parts
/// of it before new jobs, and what they leave its own device does, so it never waits for a device
/// that has not begun.
class DeviceWorkers {
public:
    /// Called on a worker's thread when a job has ended.
    using Ended = std::function<void(std::shared_ptr<DaemonJob>)>;

    /// `memory_limit` bytes of each device, 0 for all that is free. Throws std::system_error when
    /// the system gives no thread.
    DeviceWorkers(std::span<const std::unique_ptr<Device>> devices, std::uint64_t memory_limit,
                  Ended ended);
    /// Stops and waits for all threads.
    ~DeviceWorkers();

    void submit(std::shared_ptr<DaemonJob> job);
    /// True when the job was still waiting: it is forgotten then. Else it ends at its next look at
    /// the stop request.
    bool cancel(const std::shared_ptr<DaemonJob>& job);

    /// Runs all parts, on this device's thread and those of others that are free. Adds the devices
    /// that ran a part to those in `took_part`.
    Status run_parts(DaemonJob& job, std::size_t parts, Device& device, std::int32_t number,
                     std::vector<bool>& took_part);
    /// Of these devices.
    std::string names_of(const std::vector<bool>& some) const;
    std::size_t devices() const { return names_.size(); }

    /// Stops all jobs; true when all threads have ended within this time.
    bool stop(std::chrono::milliseconds patience);

private:
    void stop_and_join();
    void work(Device& device, std::int32_t number);
    /// What a device does next: a job, a part of another device's, or nothing any more.
    struct Next {
        std::shared_ptr<DaemonJob> job;
        PartedJob* parted = nullptr;
    };
    Next next(Device& device, std::int32_t number);
    std::shared_ptr<DaemonJob> take_waiting(std::int32_t number);
    bool lend_hand(PartedJob& parted, Device& device, std::int32_t number);
    void run_one_part(PartedJob& parted, Device& device, std::int32_t number, Execution& execution,
                      std::unique_lock<std::mutex>& lock);

    std::vector<std::string> names_;  // of the devices
    std::uint64_t memory_limit_;
    Ended ended_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<DaemonJob>> waiting_;
    std::vector<std::shared_ptr<DaemonJob>> running_;  // by device, or null
    std::vector<PartedJob*> parted_;                   // that have parts left to take
    std::size_t threads_running_ = 0;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

/// Runs one job, first of all on one device, and makes its reply. Never throws.
void run_job(DaemonJob& job, Device& device, std::int32_t number, DeviceWorkers& workers) noexcept;

}  // namespace gputext
