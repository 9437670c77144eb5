// kernels/thesaurus/detail/pair_keys.hpp - pairs of words as integers to be sorted
//
// A key is the first word, less where its range begins, above the second one. Sorted keys are in
// the order of the first words and then of the second ones; sorted again by the lower bits alone,
// which keeps the order of the others, they are those of the second words.
//
// Keys of 32 bits are sorted more than twice as fast as those of 64, so that first words are
// divided into a few ranges where that makes them fit.

#pragma once

#include <bit>
#include <cstdint>

#include "cpp/base/host_device.hpp"

namespace gputext::gpu {

struct WordKeys {
    static constexpr std::uint32_t kMostRanges = 4;

    std::uint32_t words = 0;
    int low_bits = 0;            // of the second word
    int bits = 0;                // of a key
    std::uint32_t ranges = 1;    // of first words
    std::uint32_t of_range = 0;  // first words
    bool wide = false;           // 64 bits a key

    static WordKeys of(std::uint32_t words) {
        WordKeys keys;
        keys.words = words;
        keys.low_bits = words <= 1 ? 1 : std::bit_width(words - 1);
        const int high_bits = keys.low_bits;
        keys.wide = high_bits + keys.low_bits > 32;
        if (keys.wide && keys.low_bits < 32) {
            const std::uint32_t of_range = std::uint32_t{1} << (32 - keys.low_bits);
            const std::uint32_t ranges = (words - 1) / of_range + 1;
            if (ranges <= kMostRanges) {
                keys.wide = false;
                keys.ranges = ranges;
                keys.of_range = of_range;
                keys.bits = 32;
                return keys;
            }
        }
        keys.of_range = words;
        keys.bits = high_bits + keys.low_bits;
        return keys;
    }

    GPUTEXT_HOST_DEVICE std::uint64_t key(std::uint32_t range, std::uint32_t first,
                                          std::uint32_t second) const {
        return std::uint64_t{first - range * of_range} << low_bits | second;
    }
    GPUTEXT_HOST_DEVICE std::uint32_t first(std::uint32_t range, std::uint64_t key) const {
        return range * of_range + static_cast<std::uint32_t>(key >> low_bits);
    }
    GPUTEXT_HOST_DEVICE std::uint32_t second(std::uint64_t key) const {
        return static_cast<std::uint32_t>(key & ((std::uint64_t{1} << low_bits) - 1));
    }
    GPUTEXT_HOST_DEVICE bool in_range(std::uint32_t range, std::uint32_t first) const {
        return first - range * of_range < of_range;
    }
};

/// Which neighbors are looked for together: those of one place if places are told apart, else all,
/// with the smaller word first.
struct PairsWanted {
    std::uint32_t least = 1, most = 1;  // places apart
    bool ordered = false;               // smaller word first
};

/// Calls take(word, neighbor) for each pair whose first word is token `at`, of `size` tokens.
template <class Take>
GPUTEXT_HOST_DEVICE void pairs_of(const std::uint32_t* words, const std::uint32_t* positions,
                                  std::uint64_t at, std::uint64_t size, const PairsWanted& wanted,
                                  Take&& take) {
    const std::uint32_t position = positions[at];
    for (std::uint64_t next = at + 1; next < size; ++next) {
        const std::uint32_t places = positions[next] - position;
        if (places > wanted.most) break;
        if (places < wanted.least) continue;
        const std::uint32_t a = words[at], b = words[next];
        if (wanted.ordered && b < a)
            take(b, a);
        else
            take(a, b);
    }
}

}  // namespace gputext::gpu
