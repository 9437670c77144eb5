// cpp/base/helper_threads.hpp - threads without signals, and a number of them that help the thread
// that starts them

#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace gputext {

/// A thread that no signal of the process is ever delivered to: a server's signal handlers must
/// run on the thread that they belong to.
std::thread start_thread_without_signals(std::function<void()> body);

/// Joins its threads when it is destroyed, whatever else fails: a std::thread that is destroyed
/// before it has been joined ends the process.
class HelperThreads {
public:
    HelperThreads() = default;
    ~HelperThreads() { join(); }
    HelperThreads(const HelperThreads&) = delete;
    HelperThreads& operator=(const HelperThreads&) = delete;

    /// Starts up to `most` threads that call work(1), work(2) and so on, each once; where there are
    /// threads already, the numbers go on. They are fewer where the system gives no more threads or
    /// no more memory. `work` has to live until join(), and must not throw.
    template <class Work>
    void start(std::size_t most, const Work& work) noexcept {
        try {
            threads_.reserve(threads_.size() + most);
            for (std::size_t i = 0; i < most; ++i) {
                const auto number = static_cast<unsigned>(threads_.size() + 1);
                threads_.push_back(start_thread_without_signals([&work, number] { work(number); }));
            }
        } catch (const std::system_error&) {
        } catch (const std::bad_alloc&) {
        }
    }

    std::size_t size() const noexcept { return threads_.size(); }

    void join() noexcept {
        for (std::thread& thread : threads_) thread.join();
        threads_.clear();
    }

private:
    std::vector<std::thread> threads_;
};

// ---- Threads that stay between calls ----

/// Threads that help again and again: to start a thread, and to give its stack back, takes longer
/// than much of the work. They wait without using a processor. One caller at a time.
class Crew {
public:
    Crew() = default;
    ~Crew();
    Crew(const Crew&) = delete;
    Crew& operator=(const Crew&) = delete;

    /// Calls work(0) on the caller's thread and work(1) to work(most) on others, and waits for all.
    /// They are fewer where the system gives no more threads or no more memory. It must not throw.
    using Work = std::function<void(unsigned thread)>;
    void run(std::size_t most, const Work& work) noexcept;

private:
    struct Wait {
        Crew& crew;

        void operator()(unsigned thread) const { crew.wait(thread); }
    };
    void wait(unsigned thread);

    std::mutex mutex_;
    std::condition_variable begins_, ends_;
    const Work* work_ = nullptr;
    std::size_t calls_ = 0;    // of run()
    std::size_t wanted_ = 0;   // threads that have a part in the call
    std::size_t working_ = 0;  // of these
    bool over_ = false;
    const Wait wait_{*this};
    HelperThreads threads_;  // last: they use what is above
};

// ---- A fixed number of threads that wait for one another ----

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
