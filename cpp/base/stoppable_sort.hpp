// cpp/base/stoppable_sort.hpp - sorting that a stop request ends early

#pragma once

#include <algorithm>
#include <cstddef>

#include "cpp/base/stop.hpp"

namespace gputext {

/// As std::sort(), of elements that are trivial to copy: less() may take a microsecond. Returns
/// false when stopped, and then leaves them in no particular order, some perhaps twice.
template <class Iterator, class Less>
bool stoppable_sort(Iterator begin, Iterator end, const Less& less, Stop stop) {
    struct Stopped {};
    constexpr std::size_t kComparisons = 4096;  // between two looks
    std::size_t done = 0;
    try {
        std::sort(begin, end, [&](const auto& a, const auto& b) {
            if (++done % kComparisons == 0 && stop()) throw Stopped();
            return less(a, b);
        });
    } catch (const Stopped&) {
        return false;
    }
    return true;
}

}  // namespace gputext
