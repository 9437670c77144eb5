// cpp/stoppable.hpp - standard steps that take long on huge inputs, ended early by a stop request
//
// Each returns false when stopped, and then leaves its vector in no particular state.

#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "cpp/stop.hpp"

namespace gputext {

/// Symbols, bytes or elements of a simple loop between two looks: about a millisecond's work.
inline constexpr std::size_t kLookEvery = std::size_t{1} << 20;

/// The vector becomes `size` copies of `value`, as by assign().
template <class T>
bool stoppable_assign(std::vector<T>& vector, std::size_t size, const T& value, Stop stop) {
    constexpr std::size_t step = std::max<std::size_t>(1, kLookEvery / sizeof(T));
    vector.clear();
    vector.reserve(size);
    while (vector.size() < size) {
        if (stop()) return false;
        vector.resize(vector.size() + std::min(step, size - vector.size()), value);
    }
    return true;
}

/// std::sort of elements that are copied without fail.
template <class T, class Less>
bool stoppable_sort(std::vector<T>& vector, Less less, Stop stop) {
    struct Stopped {};
    std::size_t comparisons = 0;
    try {
        // std::sort has no other way out than an exception.
        std::sort(vector.begin(), vector.end(), [&](const T& a, const T& b) {
            if (++comparisons % 65536 == 0 && stop()) throw Stopped();
            return less(a, b);
        });
    } catch (const Stopped&) {
        return false;
    }
    return true;
}

}  // namespace gputext
