// cpp/daemon/background_release.hpp - thread that gives back what ended jobs hold

#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace gputext {

/// Unmapping and freeing the gigabytes of a job takes tenths of a second, which neither the event
/// loop nor a device has to wait for.
class BackgroundRelease {
public:
    /// At most so many objects wait to be released. Throws std::system_error when the system gives
    /// no thread.
    explicit BackgroundRelease(std::size_t most_waiting);
    /// Waits until all is released.
    ~BackgroundRelease();
    BackgroundRelease(const BackgroundRelease&) = delete;
    BackgroundRelease& operator=(const BackgroundRelease&) = delete;

    /// Lets go of the object on the thread; at once where too many wait already, so that no more
    /// memory is held than these have.
    void release(std::shared_ptr<void> object);

private:
    void work();

    std::size_t most_waiting_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::shared_ptr<void>> waiting_;
    bool stopping_ = false;
    std::thread thread_;
};

}  // namespace gputext
