// bench/gpu_bench.hpp - shared code of the benchmarks on a GPU

#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "cpp/base/status.hpp"

namespace gputext::bench {

/// Elapsed time since it was made: what runs on a GPU takes none of the processor's.
class Clock {
public:
    double seconds() const {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }

private:
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// A benchmark without an answer has nothing to say.
inline void check(const Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::exit(1);
}

}  // namespace gputext::bench
