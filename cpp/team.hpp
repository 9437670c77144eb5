// cpp/team.hpp - threads that wait for one another, which needs their number to be known

#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "cpp/execution.hpp"

namespace gputext {

/// The thread that makes it and others, at most `most` in all, as many as the system gives. For
/// work that meets at barriers; Execution::parallel_for() is for work that does not.
class Team {
public:
    using Work = std::function<void(unsigned thread)>;

    explicit Team(unsigned most) {
        try {
            others_.reserve(most);
            for (unsigned thread = 1; thread < most; ++thread)
                others_.push_back(start_thread_without_signals([this, thread] { wait(thread); }));
        } catch (const std::system_error&) {
            // Those that there are do it.
        }
    }
    ~Team() {
        begin({});
        for (std::thread& other : others_) other.join();
    }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    unsigned size() const { return 1 + static_cast<unsigned>(others_.size()); }

    /// Once: calls work(thread) on each, 0 on the caller's, and waits for all. It must not throw.
    void run(const Work& work) {
        begin(work);
        work(0);
        for (std::thread& other : others_) other.join();
        others_.clear();
    }

private:
    void begin(const Work& work) {
        {
            const std::lock_guard lock(mutex_);
            if (!begun_) work_ = work;
            begun_ = true;
        }
        begins_.notify_all();
    }
    void wait(unsigned thread) {
        std::unique_lock lock(mutex_);
        begins_.wait(lock, [this] { return begun_; });
        lock.unlock();
        if (work_) work_(thread);
    }

    std::mutex mutex_;
    std::condition_variable begins_;
    bool begun_ = false;
    Work work_;
    std::vector<std::thread> others_;
};

}  // namespace gputext
