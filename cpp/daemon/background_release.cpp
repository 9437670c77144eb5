#include "cpp/daemon/background_release.hpp"

#include <utility>

#include "cpp/base/helper_threads.hpp"

namespace gputext {

BackgroundRelease::BackgroundRelease(std::size_t most_waiting)
    : most_waiting_(most_waiting), thread_(start_thread_without_signals([this] { work(); })) {}

BackgroundRelease::~BackgroundRelease() {
    {
        const std::lock_guard lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void BackgroundRelease::release(std::shared_ptr<void> object) {
    {
        const std::lock_guard lock(mutex_);
        if (waiting_.size() >= most_waiting_) return;
        waiting_.push_back(std::move(object));
    }
    changed_.notify_all();
}

void BackgroundRelease::work() {
    std::unique_lock lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        std::shared_ptr<void> object = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        object.reset();
        lock.lock();
    }
}

}  // namespace gputext
