// tests/support/stops_soon.hpp - how soon work ends that is to stop

#pragma once

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <string_view>
#include <thread>

#include "cpp/base/execution.hpp"
#include "tests/support/test_size.hpp"

namespace gputext::testing {

using namespace std::chrono_literals;

/// Milliseconds that work may take to stop.
inline constexpr double kSoon = kSanitized ? 1000 : 50;

using StoppableWork = std::function<Status(Execution&)>;

/// Whether the work is to stop now, which began so long ago.
using StopMoment = std::function<bool(const Execution&, std::chrono::steady_clock::duration)>;

/// After so many milliseconds.
inline StopMoment after(int milliseconds) {
    const std::chrono::milliseconds time(milliseconds);
    return [time](const Execution&, auto elapsed) { return elapsed >= time; };
}

/// So many milliseconds after the phase has begun.
inline StopMoment after_begin_of(std::string_view phase, int milliseconds) {
    const std::chrono::milliseconds time(milliseconds);
    return [=, begin = std::chrono::steady_clock::duration()](const Execution& execution,
                                                              auto elapsed) mutable {
        if (execution.phase() != phase) begin = elapsed;
        return elapsed >= begin + time;
    };
}

/// When it has done so many steps of the phase.
inline StopMoment in_phase(std::string_view phase, std::uint64_t steps) {
    return [=](const Execution& execution, auto) {
        return execution.phase() == phase && execution.done() >= steps;
    };
}

/// How long work took to end, from the moment at which it was to stop: milliseconds, and those of
/// them in which this process had a processor, of all its threads. None for work that had ended.
struct TimeToStop {
    double all = 0, computed = 0;
};

inline double processor_milliseconds() {
    timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

/// Of the work on two threads.
inline TimeToStop time_to_stop(const StoppableWork& work, const StopMoment& moment) {
    using Clock = std::chrono::steady_clock;
    Execution execution(2);
    std::atomic<bool> ended{false};
    Clock::time_point requested;
    double computed = 0;
    const auto begin = Clock::now();
    std::thread stopper([&] {
        while (!ended && !moment(execution, Clock::now() - begin))
            std::this_thread::sleep_for(100us);
        requested = Clock::now();
        computed = processor_milliseconds();
        execution.request_stop();
    });
    const Status status = work(execution);
    const auto end = Clock::now();
    const double computed_at_end = processor_milliseconds();
    ended = true;
    stopper.join();
    if (status.ok()) return {};
    EXPECT_EQ(status.code(), ErrorCode::cancelled);
    return {std::chrono::duration<double, std::milli>(end - requested).count(),
            computed_at_end - computed};
}

/// That work that is to stop at that moment ends soon. On a busy machine it is late only if it has
/// computed all the while, or for a time that nothing explains; and where any single run is late,
/// another one may be in time.
inline void expect_stops_soon(const StoppableWork& work, const StopMoment& moment,
                              double most = kSoon) {
    TimeToStop time = time_to_stop(work, moment);
    const auto late = [&] { return std::min(time.all, time.computed) >= most; };
    for (int run = 1; run < 3 && late(); ++run) time = time_to_stop(work, moment);
    EXPECT_FALSE(late()) << time.all << " ms, and " << time.computed << " ms of processors";
    EXPECT_LT(time.all, 20 * most);
}

}  // namespace gputext::testing
