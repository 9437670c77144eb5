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
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "cpp/daemon/device.hpp"
#include "cpp/daemon/fault.hpp"
#include "cpp/daemon/operator_job.hpp"
#include "cpp/link/message_socket.hpp"

namespace gputext {

/// A device as replies name it.
struct NamedDevice {
    const Device* device;
    std::string name;
};

/// A device that failed in a job, and how: device_error, device_lost or out_of_memory.
struct DeviceFailure {
    std::int32_t device;
    Status status;
};

/// The parts that OperatorJob::prepare() made of a job, or next_round(), and what devices have done
/// of them.
struct JobParts {
    std::size_t count = 0;          // 0 until the job has been prepared, and after the last round
    std::vector<std::size_t> open;  // neither done nor worked on; the one to be done next is last
    std::size_t running = 0;        // worked on
    std::atomic<unsigned> gathered = 0;  // devices that have begun a part
    std::int32_t first = -1;  // the device that began the job, and uses the job's execution
    std::vector<std::unique_ptr<Execution>> executions;  // by device, of the others
    std::vector<bool> at_work;                           // devices that have begun parts
    std::vector<bool> devices;                           // that have done parts
    std::vector<DeviceFailure> failures;  // in the order in which they came; at most one a device

    void open_all(std::size_t parts) {
        open.resize(parts);
        std::iota(open.rbegin(), open.rend(), std::size_t{0});
        count = parts;
    }
};

/// A request on its way to a reply. Written by the server before it is handed to the workers, then
/// by them alone until it is handed back; atomics and the execution may be read meanwhile.
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
    /// -1 while it waits. Where there are several, the one that began it; once that one has failed,
    /// another one that works on it.
    std::atomic<std::int32_t> device{-1};
    std::atomic<const Execution*> shown{&execution};  // how far that device is
    JobParts parts;
    Clock::time_point begun;

    Status status;  // of the whole job
    Packet reply;   // to send, also for an error; no bytes at all: none
    std::uint64_t milliseconds = 0;
    std::uint64_t retries = 0;   // as in JobReport
    std::uint64_t uploaded = 0;  // the same
};

/// What is said of jobs that another gputextd has to run, since this one has lost a device.
Status ends_for_lost_device();

/// One thread a device takes jobs in the order of their submission, each device those that it may
/// run. A job waits until a device is free: devices have one memory each, and jobs are planned for
/// all of it. Of a job of several parts the device that began it does parts until none is open;
/// others that are free take parts of it before new jobs. Whoever ends the last part of a job makes
/// its reply, so no thread waits for another one.
///
/// A part whose device failed is open again for the devices that have not failed in this job; the
/// one that failed takes no more parts of it. The job fails, with the error that came first, when
/// no device is left that may run it. A device that is lost takes nothing any more.
class DeviceWorkers {
public:
    /// Called when a job has ended: on a worker's thread, or by submit().
    using Ended = std::function<void(std::shared_ptr<DaemonJob>)>;

    /// `memory_limit` bytes of each device, 0 for all that is free. Throws std::system_error when
    /// the system gives no thread.
    DeviceWorkers(std::span<const std::unique_ptr<Device>> devices, std::uint64_t memory_limit,
                  Ended ended);
    /// Stops and waits for all threads.
    ~DeviceWorkers();

    /// A job that no device can run any more, as they are lost, ends at once: unavailable.
    void submit(std::shared_ptr<DaemonJob> job);
    /// True when no device was at work on the job: it is forgotten then. Else it ends at its next
    /// look at the stop request.
    bool cancel(const std::shared_ptr<DaemonJob>& job);

    /// Stops all jobs; true when all threads have ended within this time.
    bool stop(std::chrono::milliseconds patience);

private:
    using Lock = std::unique_lock<std::mutex>;
    using SharedJob = std::shared_ptr<DaemonJob>;

    void stop_and_join();
    void work(Device& device, std::int32_t number);
    SharedJob next(Device& device, std::int32_t number, Lock& lock);
    SharedJob take_waiting(std::int32_t number);

    bool may_run(const DaemonJob& job, std::int32_t number) const;
    bool anyone_may_run(const DaemonJob& job) const;
    void begin(const SharedJob& job, std::int32_t number, Lock& lock);
    bool begin_next_round(const SharedJob& job, Lock& lock);
    void run_one_part(const SharedJob& job, Device& device, std::int32_t number, Lock& lock);
    void note_failure(DaemonJob& job, std::int32_t number, Status status);
    void put_back(const SharedJob& job, std::size_t part, std::int32_t number);
    void show_another_device(const SharedJob& job);
    void end_early(const SharedJob& job, Status status);
    void leave(SharedJob job, std::int32_t number, Lock& lock);
    void hand_back(SharedJob job, Lock& lock);
    SharedJob take_stranded();
    void end_stranded_jobs(Lock& lock);

    std::vector<NamedDevice> devices_;
    std::uint64_t memory_limit_;
    Ended ended_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t unfinished_ = 0;      // jobs that have neither ended nor been forgotten
    std::deque<SharedJob> waiting_;   // for a device to begin them
    std::vector<SharedJob> open_;     // begun, with open parts
    std::vector<SharedJob> running_;  // by device, or null
    std::vector<bool> lost_;          // by device
    std::size_t threads_running_ = 0;
    bool stopping_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace gputext
