// cpp/base/stoppable.hpp - loops over huge inputs that a stop request ends early

#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "cpp/base/stop.hpp"

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

/// Appends the bytes. Returns false when stopped, after some of them.
template <class Container>
bool stoppable_append(Container& container, std::string_view bytes, Stop stop) {
    while (!bytes.empty()) {
        if (bytes.size() > kLookEvery && stop()) return false;
        const std::string_view part = bytes.substr(0, kLookEvery);
        container.insert(container.end(), part.begin(), part.end());
        bytes.remove_prefix(part.size());
    }
    return true;
}

// ---- Sorting that a stop request ends early ----

/// As std::sort(), of elements that are trivial to copy. less() looks at `length` symbols at most.
/// Returns false when stopped, and then leaves them in no particular order, some perhaps twice.
template <class Iterator, class Less>
bool stoppable_sort(Iterator begin, Iterator end, const Less& less, Stop stop,
                    std::size_t length = 1) {
    struct Stopped {};
    // Between two looks: less() may take a microsecond, and one of very many symbols longer.
    constexpr std::size_t kMostComparisons = 4096;
    const std::size_t comparisons =
        std::clamp<std::size_t>(16 * kLookEvery / std::max<std::size_t>(length, 1), 1,
                                kMostComparisons);
    std::size_t done = 0;
    try {
        std::sort(begin, end, [&](const auto& a, const auto& b) {
            if (++done % comparisons == 0 && stop()) throw Stopped();
            return less(a, b);
        });
    } catch (const Stopped&) {
        return false;
    }
    return true;
}

}  // namespace gputext
