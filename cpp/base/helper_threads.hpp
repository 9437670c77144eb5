// cpp/base/helper_threads.hpp - threads without signals, and a number of them that help the thread
// that starts them

#pragma once

#include <cstddef>
#include <functional>
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

    /// Starts up to `most` threads that call work(1), work(2) and so on, each once. They are fewer
    /// where the system gives no more threads or no more memory. `work` has to live until join(),
    /// and must not throw.
    template <class Work>
    void start(std::size_t most, const Work& work) noexcept {
        try {
            threads_.reserve(threads_.size() + most);
            for (unsigned number = 1; number <= most; ++number)
                threads_.push_back(start_thread_without_signals([&work, number] { work(number); }));
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

}  // namespace gputext
