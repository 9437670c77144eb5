// bench/stopwatch.hpp - processor time of this process

#pragma once

#include <ctime>

namespace gputext::bench {

/// Seconds of processor time, of all threads together, since it was made.
class Stopwatch {
public:
    double seconds() const { return now() - start_; }

private:
    static double now() {
        timespec time;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }

    double start_ = now();
};

}  // namespace gputext::bench
