// bench/phase_times.hpp - measures the phases of an operator

#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "cpp/base/execution.hpp"

namespace gputext::bench {

/// Looks every 20 microseconds, or as often as the system lets it, at the phase that an execution
/// is in.
class PhaseTimes {
public:
    explicit PhaseTimes(const Execution& execution)
        : sampler_([this, &execution] { sample(execution); }) {}

    /// Seconds by phase.
    const std::map<std::string, double>& stop() {
        done_ = true;
        sampler_.join();
        return seconds_;
    }

private:
    using Clock = std::chrono::steady_clock;

    void sample(const Execution& execution) {
        auto last = Clock::now();
        while (!done_) {
            const std::string phase = execution.phase();
            std::this_thread::sleep_for(std::chrono::microseconds(20));
            const auto now = Clock::now();
            seconds_[phase] += std::chrono::duration<double>(now - last).count();
            last = now;
        }
    }

    std::atomic<bool> done_{false};
    std::map<std::string, double> seconds_;
    std::thread sampler_;  // last: it uses what is above
};

}  // namespace gputext::bench
