#include "cpp/daemon/device_workers.hpp"

#include <algorithm>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/helper_threads.hpp"
#include "cpp/link/memory_file.hpp"

namespace gputext {
namespace {

constexpr unsigned kMostRetries = 4;  // down to a sixteenth of the memory
constexpr std::chrono::seconds kIdleUntilRelease{10};

/// Until so many devices have begun parts of the job.
Status gather(const DaemonJob& job, unsigned devices, const Execution& execution) {
    while (job.parts.gathered < devices) {
        if (execution.stop_requested()) return Status::cancelled();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
}

/// A fault that names no device is one of the device that the job shows.
Status suffer_all(DaemonJob& job, FaultPoint point, std::int32_t device, Execution& execution) {
    for (Fault& fault : job.faults) {
        if (fault.kind == FaultKind::gather && fault.point == point)
            GPUTEXT_TRY(gather(job, fault.count, execution));
        if (device != (fault.device < 0 ? job.device.load() : fault.device)) continue;
        if (Status status = suffer(fault, point, execution); !status.ok()) return status;
    }
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
/// counts: it is about all of the memory.
Status compute(DaemonJob& job, std::size_t part, Device& device, std::int32_t number,
               std::uint64_t memory_limit, Execution& execution, std::uint64_t& retries) {
    std::uint64_t memory = memory_for(job, device, memory_limit);
    Status first;
    for (;;) {
        Status status = suffer_all(job, FaultPoint::in_job, number, execution);
        if (status.ok()) status = job.work->run(part, device, memory, execution);
        if (status.code() != ErrorCode::out_of_memory) return status;
        if (first.ok()) first = std::move(status);
        if (retries == kMostRetries) return first;
        ++retries;
        memory /= 2;
    }
}

/// Whether a device failed, so that another one may do better.
bool is_of_device(ErrorCode code) {
    return code == ErrorCode::device_error || code == ErrorCode::device_lost ||
           code == ErrorCode::out_of_memory;
}

Execution& execution_on(DaemonJob& job, std::int32_t device) {
    return device == job.parts.first ? job.execution : *job.parts.executions[device];
}

bool has_failed(const DaemonJob& job, std::int32_t device) {
    const auto& failures = job.parts.failures;
    return std::any_of(failures.begin(), failures.end(),
                       [device](const auto& failure) { return failure.device == device; });
}

/// Makes the job's parts, all of them open, and what devices need for them, so that nothing that is
/// put into these vectors later needs memory.
Status prepare(DaemonJob& job, std::int32_t number, std::size_t devices, std::size_t devices_left) {
    JobParts& parts = job.parts;
    parts.first = number;
    parts.at_work.resize(devices);
    parts.devices.resize(devices);
    parts.failures.reserve(devices);
    GPUTEXT_TRY(suffer_all(job, FaultPoint::before_job, number, job.execution));
    job.execution.begin_phase("checking the request", 0);
    GPUTEXT_TRY(job.work->read(JobFiles(job.files, job.chunks), job.execution));
    job.files.clear();  // they are mapped
    const std::size_t usable = job.work->limits().device < 0 ? devices_left : 1;
    const auto count = job.work->prepare(usable, job.execution);
    if (!count.ok()) return count.status();
    const auto threads = job.execution.threads() / std::min(*count, devices);
    for (std::size_t i = 0; i < devices; ++i)
        parts.executions.push_back(
            std::make_unique<Execution>(static_cast<unsigned>(threads), job.execution));
    parts.open_all(*count);
    return {};
}

/// Asks the job how it goes on, and makes those parts.
Status prepare_next_round(DaemonJob& job) {
    const auto count = job.work->next_round(job.execution);
    if (!count.ok()) return count.status();
    job.parts.open_all(*count);
    return {};
}

double seconds_since(DaemonJob::Clock::time_point begin) {
    return std::chrono::duration<double>(DaemonJob::Clock::now() - begin).count();
}

/// Of those that had a share of the work.
std::string names_of(const std::vector<NamedDevice>& devices, const DaemonJob& job) {
    std::string names;
    for (std::size_t i = 0; i < devices.size(); ++i)
        if (job.parts.devices[i] && job.work->has_work_of(*devices[i].device))
            names += (names.empty() ? "" : ", ") + devices[i].name;
    return names;
}

Status make_reply(DaemonJob& job, const std::vector<NamedDevice>& devices) {
    MemoryFile file;
    GPUTEXT_TRY(job.work->merge(job.execution));
    GPUTEXT_TRY(job.work->write(file, job.execution));
    GPUTEXT_TRY(file.seal());
    JobReport report;
    report.device = job.device;
    report.device_name = names_of(devices, job);
    report.seconds = seconds_since(job.begun);
    report.retries = static_cast<std::uint32_t>(job.retries);
    report.uploaded = job.uploaded;
    report.phases = job.execution.phase_times();
    job.reply.bytes = encode(job.work->reply(report));
    job.reply.descriptors.push_back(file.release_descriptor());
    return suffer_all(job, FaultPoint::before_reply, job.device, job.execution);
}

/// Makes the reply of a job whose parts are done, or which has failed. Never throws.
void finish(DaemonJob& job, const std::vector<NamedDevice>& devices) noexcept {
    job.shown = &job.execution;
    if (job.status.ok()) job.status = status_or_exception([&] { return make_reply(job, devices); });
    job.files.clear();
    job.milliseconds = static_cast<std::uint64_t>(1000 * seconds_since(job.begun));
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

/// For those who look at it. Never throws.
void begin_phase_of_waiting(Execution& execution) {
    [[maybe_unused]] const Status begun = status_or_exception([&] {
        execution.begin_phase("waiting for other devices", 0);
        return Status();
    });
}

/// What came first counts.
Status first_failure(const DaemonJob& job) {
    return status_or_exception([&] { return job.parts.failures[0].status; });
}

}  // namespace

Status ends_for_lost_device() {
    return {ErrorCode::unavailable, "gputextd ends because a device was lost",
            "It is started again for the next job."};
}

DeviceWorkers::DeviceWorkers(std::span<const std::unique_ptr<Device>> devices,
                             std::uint64_t memory_limit, Ended ended)
    : memory_limit_(memory_limit),
      ended_(std::move(ended)),
      running_(devices.size()),
      lost_(devices.size()) {
    for (const auto& device : devices) devices_.push_back({device.get(), device->info().name});
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

void DeviceWorkers::submit(SharedJob job) {
    {
        Lock lock(mutex_);
        open_.reserve(unfinished_ + 1);
        waiting_.push_back(std::move(job));
        ++unfinished_;
        if (std::count(lost_.begin(), lost_.end(), true) > 0) end_stranded_jobs(lock);
    }
    changed_.notify_all();
}

bool DeviceWorkers::cancel(const SharedJob& job) {
    job->execution.request_stop();
    const std::lock_guard lock(mutex_);
    const bool idle =
        std::erase(waiting_, job) != 0 || (job->parts.running == 0 && std::erase(open_, job) != 0);
    if (idle) --unfinished_;
    return idle;
}

bool DeviceWorkers::stop(std::chrono::milliseconds patience) {
    Lock lock(mutex_);
    stopping_ = true;
    waiting_.clear();
    open_.clear();
    for (const SharedJob& job : running_)
        if (job != nullptr) job->execution.request_stop();
    changed_.notify_all();
    return changed_.wait_for(lock, patience, [this] { return threads_running_ == 0; });
}

void DeviceWorkers::work(Device& device, std::int32_t number) {
    [[maybe_unused]] const Status prepared = status_or_exception([&] {
        device.prepare();
        return Status();
    });
    Lock lock(mutex_);
    while (!lost_[number]) {
        SharedJob job = next(device, number, lock);
        if (job == nullptr) break;
        running_[number] = job;
        if (job->parts.count == 0) begin(job, number, lock);
        do {
            while (!job->parts.open.empty() && may_run(*job, number))
                run_one_part(job, device, number, lock);
        } while (begin_next_round(job, lock));
        leave(std::move(job), number, lock);
    }
    if (lost_[number]) end_stranded_jobs(lock);
    --threads_running_;
    changed_.notify_all();
}

/// A job with parts for this device, or else one that waits; null at the end. Waits for it.
DeviceWorkers::SharedJob DeviceWorkers::next(Device& device, std::int32_t number, Lock& lock) {
    bool released = false;
    for (;;) {
        if (stopping_) return nullptr;
        const auto open = std::find_if(open_.begin(), open_.end(),
                                       [&](const SharedJob& job) { return may_run(*job, number); });
        if (open != open_.end()) return *open;
        if (SharedJob job = take_waiting(number)) return job;
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

/// The first one that this device may run, or null.
DeviceWorkers::SharedJob DeviceWorkers::take_waiting(std::int32_t number) {
    const auto job = std::find_if(waiting_.begin(), waiting_.end(), [&](const SharedJob& waiting) {
        return may_run(*waiting, number);
    });
    if (job == waiting_.end()) return nullptr;
    SharedJob taken = std::move(*job);
    waiting_.erase(job);
    return taken;
}

bool DeviceWorkers::may_run(const DaemonJob& job, std::int32_t number) const {
    const std::int32_t only = job.work->limits().device;
    return !lost_[number] && (only < 0 || only == number) && !has_failed(job, number);
}

bool DeviceWorkers::anyone_may_run(const DaemonJob& job) const {
    for (std::size_t i = 0; i < lost_.size(); ++i)
        if (may_run(job, static_cast<std::int32_t>(i))) return true;
    return false;
}

/// Makes the job's parts, without the lock.
void DeviceWorkers::begin(const SharedJob& job, std::int32_t number, Lock& lock) {
    job->device = number;
    job->begun = DaemonJob::Clock::now();
    const auto left = static_cast<std::size_t>(std::count(lost_.begin(), lost_.end(), false));
    lock.unlock();
    Status status =
        status_or_exception([&] { return prepare(*job, number, devices_.size(), left); });
    lock.lock();
    if (status.ok()) {
        open_.push_back(job);
        if (job->parts.count > 1) changed_.notify_all();
    } else if (status.code() == ErrorCode::device_lost) {
        note_failure(*job, number, std::move(status));
        end_early(job, first_failure(*job));
    } else {
        end_early(job, std::move(status));
    }
}

/// By whoever ended the last part of a round. False when others are at work on the job, or nothing
/// is left to compute.
bool DeviceWorkers::begin_next_round(const SharedJob& job, Lock& lock) {
    JobParts& parts = job->parts;
    if (!job->status.ok() || parts.running > 0 || !parts.open.empty()) return false;
    lock.unlock();
    Status status = status_or_exception([&] { return prepare_next_round(*job); });
    lock.lock();
    if (!status.ok()) end_early(job, std::move(status));
    if (parts.open.empty()) return false;
    open_.push_back(job);
    changed_.notify_all();
    return true;
}

/// Does the next open part, without the lock.
void DeviceWorkers::run_one_part(const SharedJob& job, Device& device, std::int32_t number,
                                 Lock& lock) {
    JobParts& parts = job->parts;
    const std::size_t part = parts.open.back();
    parts.open.pop_back();
    if (parts.open.empty()) std::erase(open_, job);
    ++parts.running;
    if (!parts.at_work[number]) ++parts.gathered;
    parts.at_work[number] = true;
    Execution& execution = execution_on(*job, number);
    if (job->device < 0) {
        job->shown = &execution;
        job->device = number;
    }
    std::uint64_t retries = 0;
    lock.unlock();
    const std::uint64_t uploaded_before = device.uploaded();
    Status status = status_or_exception(
        [&] { return compute(*job, part, device, number, memory_limit_, execution, retries); });
    const std::uint64_t uploaded = device.uploaded() - uploaded_before;
    lock.lock();
    --parts.running;
    job->retries += retries;
    job->uploaded += uploaded;
    if (status.ok()) {
        parts.devices[number] = true;
    } else if (is_of_device(status.code())) {
        note_failure(*job, number, std::move(status));
        put_back(job, part, number);
    } else {
        end_early(job, std::move(status));
    }
}

/// A device's failure in a job, of which it takes no more parts from now on.
void DeviceWorkers::note_failure(DaemonJob& job, std::int32_t number, Status status) {
    if (status.code() == ErrorCode::device_lost) lost_[number] = true;
    job.parts.failures.push_back({number, std::move(status)});
}

/// Leaves a part to the devices that have not failed, or ends the job when there is none.
void DeviceWorkers::put_back(const SharedJob& job, std::size_t part, std::int32_t number) {
    if (job->execution.stop_requested()) return end_early(job, Status::cancelled());
    if (!anyone_may_run(*job)) return end_early(job, first_failure(*job));
    if (job->device == number) show_another_device(job);
    ++job->retries;
    job->parts.open.push_back(part);
    if (job->parts.open.size() == 1) open_.push_back(job);
    changed_.notify_all();
}

/// One that works on the job and has not failed, or none.
void DeviceWorkers::show_another_device(const SharedJob& job) {
    std::int32_t other = -1;
    for (std::size_t i = running_.size(); i-- > 0;)
        if (running_[i] == job && may_run(*job, static_cast<std::int32_t>(i)))
            other = static_cast<std::int32_t>(i);
    if (other >= 0) job->shown = &execution_on(*job, other);
    job->device = other;
}

/// Ends all other parts, too.
void DeviceWorkers::end_early(const SharedJob& job, Status status) {
    if (job->status.ok() || job->status.code() == ErrorCode::cancelled)
        job->status = std::move(status);
    job->execution.request_stop();
    job->parts.open.clear();
    std::erase(open_, job);
}

/// Once this device can do nothing more of the job.
void DeviceWorkers::leave(SharedJob job, std::int32_t number, Lock& lock) {
    JobParts& parts = job->parts;
    if (parts.running > 0 || !parts.open.empty()) {
        begin_phase_of_waiting(execution_on(*job, number));
        running_[number] = nullptr;
        return;
    }
    lock.unlock();
    finish(*job, devices_);
    lock.lock();
    running_[number] = nullptr;
    hand_back(std::move(job), lock);
}

void DeviceWorkers::hand_back(SharedJob job, Lock& lock) {
    --unfinished_;
    lock.unlock();
    ended_(std::move(job));
    lock.lock();
}

/// A job that no device can run any more, with its error, or null.
DeviceWorkers::SharedJob DeviceWorkers::take_stranded() {
    const auto stranded = [this](const SharedJob& job) { return !anyone_may_run(*job); };
    if (const auto open = std::find_if(open_.begin(), open_.end(), stranded); open != open_.end()) {
        const SharedJob job = *open;
        end_early(job, first_failure(*job));
        return job;
    }
    const auto waiting = std::find_if(waiting_.begin(), waiting_.end(), stranded);
    if (waiting == waiting_.end()) return nullptr;
    SharedJob job = std::move(*waiting);
    waiting_.erase(waiting);
    job->begun = DaemonJob::Clock::now();
    job->status = status_or_exception(ends_for_lost_device);
    return job;
}

/// No device works on any of them, since one that does may do more.
void DeviceWorkers::end_stranded_jobs(Lock& lock) {
    while (SharedJob job = take_stranded()) {
        lock.unlock();
        finish(*job, devices_);
        lock.lock();
        hand_back(std::move(job), lock);
    }
}

}  // namespace gputext
