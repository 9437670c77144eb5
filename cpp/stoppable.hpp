// cpp/stoppable.hpp - loops over huge inputs that a stop request ends early

#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "cpp/stop.hpp"

namespace gputext {

/// Symbols, bytes or elements of a simple loop between two looks: about a millisecond's work.
inline constexpr std::size_t kLookEvery = std::size_t{1} << 20;

/// The vector becomes `size` copies of `value`, as by assign(). Returns false when stopped, and
/// then leaves it in no particular state.
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

}  // namespace gputext
