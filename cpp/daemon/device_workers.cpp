#include "cpp/daemon/device_workers.hpp"

#include <algorithm>
#include <optional>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/helper_threads.hpp"
#include "cpp/link/memory_file.hpp"

namespace gputext {
namespace {

constexpr unsigned kMostRetries = 4;  // down to a sixteenth of the memory
constexpr std::chrono::seconds kIdleUntilRelease{10};

Status suffer_all(DaemonJob& job, FaultPoint point) {
    for (Fault& fault : job.faults)
        if (Status status = suffer(fault, point, job.execution); !status.ok()) return status;
    return {};
}

/// The least of what is free, what the server allows and what the client allows; 0 is no limit.
std::uint64_t memory_for(const DaemonJob& job, Device& device, std::uint64_t server_limit) {
    std::uint64_t memory = device.free_memory();
    for (const std::uint64_t limit : {server_limit, job.work->limits().device_memory_limit})
        if (limit != 0) memory = std::min(memory, limit);
    return memory;
}

/// Again with half the memory as long as it does not suffice, a few times. Then what was said first
/// counts: it is about all of the memory. A job's faults are those of its own execution.
Status compute(DaemonJob& job, std::size_t part, Device& device, std::uint64_t memory_limit,
               Execution& execution, std::uint64_t& retries) {
    std::uint64_t memory = memory_for(job, device, memory_limit);
    Status first;
    for (;;) {
        Status status;
        if (&execution == &job.execution) status = suffer_all(job, FaultPoint::in_job);
        if (status.ok()) status = job.work->run(part, device, memory, execution);
        if (status.code() != ErrorCode::out_of_memory) return status;
        if (first.ok()) first = std::move(status);
        if (retries == kMostRetries) return first;
        ++retries;
        memory /= 2;
    }
}

Status make_reply(DaemonJob& job, const std::string& device_names, double seconds) {
    MemoryFile file;
    Status status = job.work->write(file, job.execution);
    if (status.ok()) status = file.seal();
    if (!status.ok()) return status;
    JobReport report;
    report.device = job.device;
    report.device_name = device_names;
    report.seconds = seconds;
    report.retries = static_cast<std::uint32_t>(job.retries);
    report.phases = job.execution.phase_times();
    job.reply.bytes = encode(job.work->reply(report));
    job.reply.descriptors.push_back(file.release_descriptor());
    return {};
}

double seconds_since(DaemonJob::Clock::time_point begin) {
    return std::chrono::duration<double>(DaemonJob::Clock::now() - begin).count();
}

Status try_to_run(DaemonJob& job, Device& device, std::int32_t number, DeviceWorkers& workers) {
    const auto begin = DaemonJob::Clock::now();
    if (Status status = suffer_all(job, FaultPoint::before_job); !status.ok()) return status;
    job.execution.begin_phase("checking the request", 0);
    if (Status status = job.work->read(JobFiles(job.files, job.chunks), job.execution);
        !status.ok())
        return status;
    job.files.clear();  // they are mapped
    const std::size_t devices = job.work->limits().device < 0 ? workers.devices() : 1;
    auto parts = job.work->prepare(devices, job.execution);
    std::vector<bool> took_part(workers.devices());
    while (parts.ok() && *parts > 0) {
        GPUTEXT_TRY(workers.run_parts(job, *parts, device, number, took_part));
        parts = job.work->next_round(job.execution);
    }
    if (!parts.ok()) return parts.status();
    Status status = job.work->merge(job.execution);
    if (status.ok()) status = make_reply(job, workers.names_of(took_part), seconds_since(begin));
    return status.ok() ? suffer_all(job, FaultPoint::before_reply) : status;
}

}  // namespace

void run_job(DaemonJob& job, Device& device, std::int32_t number, DeviceWorkers& workers) noexcept {
    const auto begin = DaemonJob::Clock::now();
    job.device = number;
    job.status = status_or_exception([&] { return try_to_run(job, device, number, workers); });
    job.files.clear();
    job.milliseconds = static_cast<std::uint64_t>(1000 * seconds_since(begin));
    const Status replied = status_or_exception([&]() -> Status {
        if (!job.status.ok()) {
            job.reply.descriptors.clear();
            job.reply.bytes = encode(error_reply(job.work->request_type(), job.status));
        }
        for (const Fault& fault : job.faults)
            if (fault.point == FaultPoint::before_reply) break_reply(fault, job.reply);
        return {};
    });
    if (!replied.ok()) job.reply = {};
}

DeviceWorkers::DeviceWorkers(std::span<const std::unique_ptr<Device>> devices,
                             std::uint64_t memory_limit, Ended ended)
    : memory_limit_(memory_limit), ended_(std::move(ended)), running_(devices.size()) {
    for (const auto& device : devices) names_.push_back(device->info().name);
    try {
        threads_.reserve(devices.size());
        for (std::size_t i = 0; i < devices.size(); ++i) {
            const std::lock_guard lock(mutex_);
            threads_.push_back(start_thread_without_signals([this, device = devices[i].get(), i] {
                work(*device, static_cast<std::int32_t>(i));
            }));
            ++threads_running_;
        }
    } catch (...) {
        stop_and_join();
        throw;
    }
}

DeviceWorkers::~DeviceWorkers() {
    stop_and_join();
}

void DeviceWorkers::stop_and_join() {
    stop(std::chrono::milliseconds(0));
    for (std::thread& thread : threads_) thread.join();
}

void DeviceWorkers::submit(std::shared_ptr<DaemonJob> job) {
    {
        const std::lock_guard lock(mutex_);
        waiting_.push_back(std::move(job));
    }
    changed_.notify_all();
}

bool DeviceWorkers::cancel(const std::shared_ptr<DaemonJob>& job) {
    job->execution.request_stop();
    const std::lock_guard lock(mutex_);
    return std::erase(waiting_, job) != 0;
}

bool DeviceWorkers::stop(std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    waiting_.clear();
    for (const auto& job : running_)
        if (job != nullptr) job->execution.request_stop();
    changed_.notify_all();
    return changed_.wait_for(lock, patience, [this] { return threads_running_ == 0; });
}

void DeviceWorkers::work(Device& device, std::int32_t number) {
    [[maybe_unused]] const Status prepared = status_or_exception([&] {
        device.prepare();
        return Status();
    });
    for (;;) {
        auto [job, parted] = next(device, number);
        // A lost device would only fail the jobs that wait.
        bool lost = false;
        if (parted != nullptr) {
            lost = lend_hand(*parted, device, number);
        } else if (job != nullptr) {
            run_job(*job, device, number, *this);
            {
                const std::lock_guard lock(mutex_);
                running_[number] = nullptr;
            }
            lost = job->status.code() == ErrorCode::device_lost;
            ended_(std::move(job));
        } else {
            break;
        }
        if (lost) break;
    }
    const std::lock_guard lock(mutex_);
    --threads_running_;
    changed_.notify_all();
}

/// Waits for it.
DeviceWorkers::Next DeviceWorkers::next(Device& device, std::int32_t number) {
    std::unique_lock lock(mutex_);
    bool released = false;
    for (;;) {
        if (stopping_) return {};
        if (!parted_.empty()) {
            ++parted_.front()->running;  // it stays where it is until this is 0 again
            return {nullptr, parted_.front()};
        }
        if (auto job = take_waiting(number)) return {running_[number] = job, nullptr};
        if (released) {
            changed_.wait(lock);
        } else if (changed_.wait_for(lock, kIdleUntilRelease) == std::cv_status::timeout) {
            lock.unlock();
            device.release_memory();
            lock.lock();
            released = true;
        }
    }
}

Status DeviceWorkers::run_parts(DaemonJob& job, std::size_t parts, Device& device,
                                std::int32_t number, std::vector<bool>& took_part) {
    PartedJob parted{job, parts, 0, 0, {}, 0, took_part};
    std::unique_lock lock(mutex_);
    if (parts > 1) {
        parted_.push_back(&parted);
        changed_.notify_all();
    }
    while (parted.next < parts) run_one_part(parted, device, number, job.execution, lock);
    if (parted.running > 0) {
        [[maybe_unused]] const Status phase = status_or_exception([&] {
            job.execution.begin_phase("waiting for other devices", 0);
            return Status();
        });
        changed_.wait(lock, [&] { return parted.running == 0; });
    }
    job.retries += parted.retries;
    took_part = std::move(parted.devices);
    return parted.status;
}

std::string DeviceWorkers::names_of(const std::vector<bool>& some) const {
    std::string names;
    for (std::size_t i = 0; i < devices(); ++i)
        if (some[i]) names += (names.empty() ? "" : ", ") + names_[i];
    return names;
}

/// Does parts of another device's job as long as there are any. True when the device was lost.
bool DeviceWorkers::lend_hand(PartedJob& parted, Device& device, std::int32_t number) {
    std::unique_lock lock(mutex_);
    const Execution& whole = parted.job.execution;
    const auto threads =
        std::max<std::size_t>(1, whole.threads() / std::min(parted.parts, devices()));
    while (parted.next < parted.parts) {
        Execution execution(static_cast<unsigned>(threads), whole);
        run_one_part(parted, device, number, execution, lock);
    }
    const bool lost = parted.status.code() == ErrorCode::device_lost;
    --parted.running;
    changed_.notify_all();
    return lost;
}

/// Runs the next part that no worker has taken, without the lock. An error ends all other parts.
void DeviceWorkers::run_one_part(PartedJob& parted, Device& device, std::int32_t number,
                                 Execution& execution, std::unique_lock<std::mutex>& lock) {
    const std::size_t part = parted.next++;
    if (parted.next == parted.parts) std::erase(parted_, &parted);
    parted.devices[number] = true;
    std::uint64_t retries = 0;
    lock.unlock();
    Status status = status_or_exception(
        [&] { return compute(parted.job, part, device, memory_limit_, execution, retries); });
    lock.lock();
    parted.retries += retries;
    if (status.ok()) return;
    if (parted.status.ok() || parted.status.code() == ErrorCode::cancelled)
        parted.status = std::move(status);
    parted.job.execution.request_stop();
    parted.next = parted.parts;
    std::erase(parted_, &parted);
}

/// The first one that this device may run, or null.
std::shared_ptr<DaemonJob> DeviceWorkers::take_waiting(std::int32_t number) {
    const auto job = std::find_if(waiting_.begin(), waiting_.end(), [number](const auto& waiting) {
        return waiting->work->limits().device < 0 || waiting->work->limits().device == number;
    });
    if (job == waiting_.end()) return nullptr;
    std::shared_ptr<DaemonJob> taken = std::move(*job);
    waiting_.erase(job);
    return taken;
}

}  // namespace gputext
