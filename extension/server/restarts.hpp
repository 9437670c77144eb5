// extension/server/restarts.hpp - when gputextd is started again, and when devices are looked for
// again. Times are in milliseconds.

#pragma once

#include <algorithm>
#include <cstdint>

namespace gputext {

/// How long sessions have to do with what is known, after so many looks that found no device: not
/// at all for the first ones, then 1, 2, 4 s and so on, at most 5 minutes.
constexpr std::int64_t pause_after_looks(int looks) {
    constexpr int kAtOnce = 3;
    constexpr std::int64_t kLongest = 300000;
    if (looks < kAtOnce) return 0;
    return std::min(kLongest, std::int64_t{1000} << std::min(looks - kAtOnce, 9));
}

/// How long the supervisor waits before it starts gputextd again, which has ended by itself: not at
/// all a few times, then 1, 2, 4 s and so on, at most a minute. What has run for a minute is
/// forgiven its past.
class Backoff {
public:
    /// `ran`: how long it ran.
    std::int64_t after_an_end(std::int64_t ran) {
        if (ran > kForgiving) ends_ = 0;
        if (++ends_ <= kForgiven) return 0;
        return std::min(kLongestWait, std::int64_t{1000} << std::min(ends_ - kForgiven - 1, 6));
    }

private:
    static constexpr std::int64_t kForgiving = 60000, kLongestWait = 60000;
    static constexpr int kForgiven = 5;

    int ends_ = 0;
};

}  // namespace gputext
