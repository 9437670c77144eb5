#include "cpp/resident/chunk_filler.hpp"

#include <utility>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/helper_threads.hpp"
#include "cpp/resident/gathered_values.hpp"

namespace gputext {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLookForUsedOrigins{20};

}  // namespace

ChunkFiller::ChunkFiller(std::shared_ptr<ResidentRanges> ranges)
    : ranges_(std::move(ranges)), thread_(start_thread_without_signals([this] { work(); })) {}

ChunkFiller::~ChunkFiller() {
    stop();
    thread_.join();
}

void ChunkFiller::submit(std::unique_ptr<FillingTask> task) {
    {
        const std::lock_guard lock(mutex_);
        if (stopping_) return task->chunk->end_filling(Status::cancelled());
        waiting_.push_back(std::move(task));
    }
    changed_.notify_all();
}

void ChunkFiller::stop() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
        if (running_ != nullptr) running_->execution.request_stop();
        for (const auto& task : waiting_) task->execution.request_stop();
    }
    changed_.notify_all();
}

/// Tasks that wait at stop() have been stopped, and end at once.
void ChunkFiller::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        const auto awake = [this] { return stopping_ || !waiting_.empty(); };
        if (origins_.empty())
            changed_.wait(lock, awake);
        else
            changed_.wait_for(lock, kLookForUsedOrigins, awake);
        if (waiting_.empty() && stopping_) break;
        std::unique_ptr<FillingTask> task;
        if (!waiting_.empty()) {
            task = std::move(waiting_.front());
            waiting_.pop_front();
            running_ = task.get();
        }
        lock.unlock();
        if (task != nullptr) run(*task);
        drop_origins(false);
        lock.lock();
        running_ = nullptr;
        lock.unlock();
        task.reset();
        lock.lock();
    }
    lock.unlock();
    drop_origins(true);
}

void ChunkFiller::run(FillingTask& task) {
    const Status begun =
        task.begin ? status_or_exception([&] { return task.begin(task.execution); }) : Status();
    if (begun.ok())
        fill(*task.chunk, task.kind, *task.origin, task.execution);
    else
        task.chunk->end_filling(begun);
    keep_origin(task);
}

void ChunkFiller::keep_origin(FillingTask& task) {
    const std::uint64_t id = task.chunk->id();
    if (ranges_ == nullptr || !ranges_->has_origin(id)) return;
    const Status kept = status_or_exception([&] {
        if (task.chunk->filling().filled())
            origins_.push_back({id, task.origin, Clock::now() + kOriginStays});
        return Status();
    });
    if (!kept.ok() || !task.chunk->filling().filled()) ranges_->drop_origin(id);
}

/// This thread unmaps what nobody else holds any more.
void ChunkFiller::drop_origins(bool all) {
    const auto now = Clock::now();
    std::erase_if(origins_, [&](const StayingOrigin& staying) {
        if (all || now >= staying.until) ranges_->drop_origin(staying.chunk);
        return !ranges_->has_origin(staying.chunk);
    });
}

}  // namespace gputext
