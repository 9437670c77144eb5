// bench/expect.hpp - ends a benchmark whose operation failed

#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "cpp/base/status.hpp"

namespace gputext::bench {

/// What the operation gives, or the end of the program with the error's message.
template <class T>
T expect(Result<T> result) {
    if (result.ok()) return std::move(*result);
    std::fprintf(stderr, "%s\n", result.status().message().c_str());
    std::exit(1);
}

}  // namespace gputext::bench
