// cpp/base/radix_sort.hpp - radix sort of integers in linear time, which can be stopped

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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

}  // namespace gputext
