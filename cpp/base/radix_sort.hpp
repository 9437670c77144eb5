// cpp/base/radix_sort.hpp - radix sorts in linear time

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "cpp/base/stop.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {

/// Sorts ascending, stably, by bytes from the one at bit `from` up; bytes that all keys share are
/// skipped. Sorting (key << 32 | index) orders indices by key; from bit 32 on, where the indices
/// ascend before. O(bytes that differ * size) time, as much memory again as the keys. Returns
/// false, leaving the keys in any order, when `stop` says so (asked every few milliseconds).
inline bool radix_sort(std::vector<std::uint64_t>& keys, Stop stop, unsigned from = 0) {
    std::vector<std::uint64_t> sorted;
    if (!stoppable_assign(sorted, keys.size(), {}, stop)) return false;
    for (unsigned shift = from; shift < 64; shift += 8) {
        const auto digit = [shift](std::uint64_t key) { return key >> shift & 255; };
        std::array<std::size_t, 256> next{};
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (i % kLookEvery == 0 && stop()) return false;
            ++next[digit(keys[i])];
        }
        if (!keys.empty() && next[digit(keys[0])] == keys.size()) continue;
        std::size_t before = 0;
        for (std::size_t& place : next) {
            const std::size_t count = place;
            place = before;
            before += count;
        }
        for (std::size_t i = 0; i < keys.size(); ++i) {
            if (i % kLookEvery == 0 && stop()) return false;
            sorted[next[digit(keys[i])]++] = keys[i];
        }
        keys.swap(sorted);
    }
    return true;
}

/// Sorts elements ascending, stably, by key(element) of so many bits. `scratch` is as long as they
/// are. O(bits * size / 9) time. Not to be stopped: for up to a million elements.
template <class T, class Key>
void radix_sort(std::span<T> elements, std::span<T> scratch, unsigned bits, const Key& key) {
    constexpr unsigned most_width = 9;  // of a digit, whose places stay in the L1 cache
    const unsigned passes = std::max(1u, (bits + most_width - 1) / most_width);
    const unsigned width = (bits + passes - 1) / passes;
    const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
    std::span<T> from = elements, to = scratch;
    for (unsigned pass = 0; pass < passes; ++pass) {
        const auto digit = [&](const T& element) { return key(element) >> pass * width & mask; };
        std::array<std::size_t, std::size_t{1} << most_width> next{};
        for (const T& element : from) ++next[digit(element)];
        std::exclusive_scan(next.begin(), next.end(), next.begin(), std::size_t{0});
        for (const T& element : from) to[next[digit(element)]++] = element;
        std::swap(from, to);
    }
    if (from.data() != elements.data()) std::ranges::copy(from, elements.begin());
}

}  // namespace gputext
