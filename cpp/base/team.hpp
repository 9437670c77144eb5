// cpp/base/team.hpp - a fixed number of threads that wait for one another

#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

#include "cpp/base/helper_threads.hpp"

namespace gputext {

/// The thread that makes it and others, at most `most` in all, as many as the system gives. For
/// work that meets at barriers; Execution::parallel_for() is for work that does not.
class Team {
public:
    using Work = std::function<void(unsigned thread)>;

    explicit Team(unsigned most) {
        if (most > 1) others_.start(most - 1, wait_);
    }
    ~Team() { begin({}); }
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    unsigned size() const { return 1 + static_cast<unsigned>(others_.size()); }

    /// Once: calls work(thread) on each, 0 on the caller's, and waits for all. It must not throw.
    void run(const Work& work) {
        begin(work);
        work(0);
        others_.join();
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
    struct Wait {
        Team& team;

        void operator()(unsigned thread) const {
            std::unique_lock lock(team.mutex_);
            team.begins_.wait(lock, [this] { return team.begun_; });
            lock.unlock();
            if (team.work_) team.work_(thread);
        }
    };

    std::mutex mutex_;
    std::condition_variable begins_;
    bool begun_ = false;
    Work work_;
    const Wait wait_{*this};
    HelperThreads others_;  // last: they use what is above
};

}  // namespace gputext
