// cpp/base/recent_words.hpp - cache of the numbers of recent words
//
// A few words make up most of a text. A table of recent words that fits a core's cache finds these
// at once; a table of all words would wait for memory at each word, and take memory for all of
// them. A forgotten word is just numbered again. Where words hardly repeat, only some of them are
// looked up in the table, to see whether this changes.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace gputext {

/// Takes 512 KB.
class RecentWords {
public:
    /// Bytes of a word; longer ones are new each time.
    static constexpr std::size_t kLongest = 24;

    RecentWords() : sets_(std::size_t{1} << kSetBits) {}

    /// The number that the word was given, if it is still known; else `next`, which it is given now
    /// and which is below 2^32 - 1. O(1).
    std::uint32_t number_of(std::string_view word, std::uint32_t next) {
        if (word.size() > kLongest) return next;
        if (left_out_ > 0) {
            --left_out_;
            return next;
        }
        const std::uint32_t number = look_up(word, next);
        found_ += number != next;
        if (++looked_up_ == kTrial) {
            if (found_ < kTrial / 16) left_out_ = 7 * kTrial;
            looked_up_ = found_ = 0;
        }
        return number;
    }

private:
    std::uint32_t look_up(std::string_view word, std::uint32_t next) {
        const Key key = key_of(word);
        Set& set = sets_[place_of(key)];
        if (set.entries[0].is(key)) return set.entries[0].number;
        // A repeated word moves to the front; a word that comes once stays behind, and is replaced
        // next.
        if (set.entries[1].is(key)) {
            std::swap(set.entries[0], set.entries[1]);
            return set.entries[0].number;
        }
        set.entries[set.entries[0].number == kNone ? 0 : 1] = {key, next};
        return next;
    }

    static constexpr unsigned kSetBits = 13;
    static constexpr std::uint32_t kTrial = 4096;  // words
    static constexpr std::uint32_t kNone = UINT32_MAX;

    /// A word's bytes, some of them twice; words of one length have one key only if they are equal.
    struct Key {
        std::uint64_t first = 0, middle = 0, last = 0;
        std::uint32_t length = 0;
    };
    struct Entry {
        std::uint64_t first = 0, middle = 0, last = 0;
        std::uint32_t length = 0;
        std::uint32_t number = kNone;

        Entry() = default;
        Entry(const Key& key, std::uint32_t given)
            : first(key.first),
              middle(key.middle),
              last(key.last),
              length(key.length),
              number(given) {}

        bool is(const Key& key) const {
            return number != kNone && first == key.first && last == key.last &&
                   middle == key.middle && length == key.length;
        }
    };
    struct alignas(64) Set {
        Entry entries[2];
    };
    static_assert(sizeof(Set) == 64);

    template <class T>
    static std::uint64_t load(const char* from) {
        T value;
        std::memcpy(&value, from, sizeof value);
        return value;
    }

    static Key key_of(std::string_view word) {
        Key key;
        const char* const begin = word.data();
        const std::size_t size = word.size();
        key.length = static_cast<std::uint32_t>(size);
        if (size >= 8) {
            key.first = load<std::uint64_t>(begin);
            key.last = load<std::uint64_t>(begin + size - 8);
            if (size > 16) key.middle = load<std::uint64_t>(begin + 8);
        } else if (size >= 4) {
            key.first = load<std::uint32_t>(begin);
            key.last = load<std::uint32_t>(begin + size - 4);
        } else if (size > 0) {
            key.first = load<std::uint8_t>(begin);
            key.middle = load<std::uint8_t>(begin + size / 2);
            key.last = load<std::uint8_t>(begin + size - 1);
        }
        return key;
    }

    static std::size_t place_of(const Key& key) {
        constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
        std::uint64_t hash = (key.first ^ key.length) * odd;
        hash = (std::rotr(hash, 32) ^ key.last) * odd;
        hash = (std::rotr(hash, 32) ^ key.middle) * odd;
        return hash >> (64 - kSetBits);
    }

    std::vector<Set> sets_;
    std::uint32_t looked_up_ = 0, found_ = 0;  // of this trial
    std::uint32_t left_out_ = 0;               // words before the next one
};

}  // namespace gputext
