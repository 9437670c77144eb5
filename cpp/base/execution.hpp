// cpp/base/execution.hpp - threads, progress and stop request of an operator

#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <string>
#include <vector>

#include "cpp/base/helper_threads.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

/// How long the phases of one name took.
struct PhaseTime {
    std::string name;
    double seconds = 0;
};

/// Shared by the thread that runs an operator, its workers, and whoever watches or stops it.
/// Everything but parallel_for may be called from any thread at any time.
class Execution {
public:
    /// `threads` is the most that work at once, the caller of parallel_for included; at least 1.
    explicit Execution(unsigned threads) : threads_(threads == 0 ? 1 : threads) {}
    /// Execution of a part of `whole`; it stops together with `whole`, which must live as long.
    Execution(unsigned threads, const Execution& whole) : Execution(threads) { whole_ = &whole; }

    unsigned threads() const { return threads_; }

    void request_stop() { stop_.store(true, std::memory_order_relaxed); }
    bool stop_requested() const {
        return stop_.load(std::memory_order_relaxed) ||
               (whole_ != nullptr && whole_->stop_requested());
    }
    /// Stop request for functions that do not take an Execution.
    Stop stop() const;

    /// Names what runs now and how many steps it has; `name` must live as long as the program.
    void begin_phase(const char* name, std::uint64_t steps);
    /// Counts steps that are not parallel_for()'s. Cancelled after a stop request.
    Status checkpoint(std::uint64_t steps = 1);
    /// The same, without a look at stop requests.
    void advance(std::uint64_t steps) { done_.fetch_add(steps, std::memory_order_relaxed); }
    const char* phase() const { return phase_.load(std::memory_order_relaxed); }
    std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }
    std::uint64_t total() const { return total_.load(std::memory_order_relaxed); }
    /// For what is trained: the epoch at work, from 1, and the mean loss of what was trained last,
    /// NaN while nobody knows it.
    void show_training(std::uint32_t epoch, double loss);
    /// 0 for what is not trained.
    std::uint32_t epoch() const { return epoch_.load(std::memory_order_relaxed); }
    double loss() const { return loss_.load(std::memory_order_relaxed); }
    /// Times of all phases until now, in the order in which they first began.
    std::vector<PhaseTime> phase_times() const;

    /// Calls body(index, worker) once for every index below `count`, in about ascending order, on
    /// up to threads() threads; `worker` is below threads() and names the caller's thread, so that
    /// a body can keep scratch memory by worker. Each call counts as a step done. Ends early with
    /// cancelled after a stop request, or with the first error that a body returned or threw;
    /// a body should take milliseconds, and look at stop() itself where it may take longer. The
    /// threads stay for the next call, until the execution is destroyed.
    using Body = std::function<Status(std::size_t index, unsigned worker)>;
    Status parallel_for(std::size_t count, const Body& body);

private:
    using Clock = std::chrono::steady_clock;

    void end_phase(Clock::time_point now);
    template <class Work>
    void work_on_threads(std::size_t others, const Work& work);

    unsigned threads_;
    const Execution* whole_ = nullptr;
    std::atomic<bool> stop_{false};
    std::atomic<const char*> phase_{""};
    std::atomic<std::uint64_t> done_{0};
    std::atomic<std::uint64_t> total_{0};
    std::atomic<std::uint32_t> epoch_{0};
    std::atomic<double> loss_{std::numeric_limits<double>::quiet_NaN()};

    mutable std::mutex times_mutex_;
    Clock::time_point phase_begin_;
    std::vector<PhaseTime> times_;  // of the phases that ended

    std::atomic<bool> crew_works_{false};
    Crew crew_;
};

}  // namespace gputext
