// bench/phase_times.hpp - where an operator's time goes

#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>

#include "cpp/execution.hpp"

namespace gputext::bench {

/// Samples the phase that an execution is in, a thousand times a second.
class PhaseTimes {
public:
    explicit PhaseTimes(const Execution& execution)
        : sampler_([this, &execution] {
              while (!done_) {
                  seconds_[execution.phase()] += 1e-3;
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
              }
          }) {}
    ~PhaseTimes() { stop(); }

    const std::map<std::string, double>& stop() {
        done_ = true;
        if (sampler_.joinable()) sampler_.join();
        return seconds_;
    }

private:
    std::atomic<bool> done_{false};
    std::map<std::string, double> seconds_;
    std::thread sampler_;
};

}  // namespace gputext::bench
