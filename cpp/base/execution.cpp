#include "cpp/base/execution.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "cpp/base/exception_status.hpp"

namespace gputext {
namespace {

/// Nothing for the time before the first phase.
void add_time(std::vector<PhaseTime>& times, const char* name, double seconds) {
    if (*name == '\0') return;
    const auto same = std::find_if(times.begin(), times.end(),
                                   [&](const auto& time) { return time.name == name; });
    if (same != times.end())
        same->seconds += seconds;
    else
        times.push_back({name, seconds});
}

}  // namespace

Stop Execution::stop() const {
    return {[](void* context) { return static_cast<const Execution*>(context)->stop_requested(); },
            const_cast<Execution*>(this)};
}

void Execution::begin_phase(const char* name, std::uint64_t steps) {
    end_phase(Clock::now());
    phase_.store(name, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    total_.store(steps, std::memory_order_relaxed);
}

void Execution::show_training(std::uint32_t epoch, double loss) {
    loss_.store(loss, std::memory_order_relaxed);
    epoch_.store(epoch, std::memory_order_relaxed);
}

/// Adds the time of the phase that runs to those of its name.
void Execution::end_phase(Clock::time_point now) {
    const std::lock_guard lock(times_mutex_);
    add_time(times_, phase(), std::chrono::duration<double>(now - phase_begin_).count());
    phase_begin_ = now;
}

std::vector<PhaseTime> Execution::phase_times() const {
    const std::lock_guard lock(times_mutex_);
    std::vector<PhaseTime> times = times_;
    add_time(times, phase(), std::chrono::duration<double>(Clock::now() - phase_begin_).count());
    return times;
}

Status Execution::checkpoint(std::uint64_t steps) {
    advance(steps);
    return stop_requested() ? Status::cancelled() : Status();
}

/// A body may use the execution itself.
template <class Work>
void Execution::work_on_threads(std::size_t others, const Work& work) {
    if (crew_works_.exchange(true, std::memory_order_acquire)) {
        HelperThreads helpers;
        helpers.start(others, work);
        work(0);
        return;
    }
    crew_.run(others, std::cref(work));
    crew_works_.store(false, std::memory_order_release);
}

Status Execution::parallel_for(std::size_t count, const Body& body) {
    std::atomic<std::size_t> next{0};
    std::atomic<bool> failed{false};
    std::mutex mutex;
    Status first_error;

    const auto work = [&](unsigned worker) {
        for (;;) {
            if (failed.load(std::memory_order_relaxed) || stop_requested()) return;
            const std::size_t index = next.fetch_add(1, std::memory_order_relaxed);
            if (index >= count) return;
            Status status = status_or_exception([&] { return body(index, worker); });
            if (!status.ok()) {
                const std::lock_guard lock(mutex);
                if (!failed.exchange(true)) first_error = std::move(status);
                return;
            }
            done_.fetch_add(1, std::memory_order_relaxed);
        }
    };

    const std::size_t wanted = std::min<std::size_t>(threads_, count);
    if (wanted < 2)
        work(0);
    else
        work_on_threads(wanted - 1, work);

    if (failed.load()) return first_error;
    if (stop_requested()) return Status::cancelled();
    return {};
}

}  // namespace gputext
