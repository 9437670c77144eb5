// cpp/trie/detail/front_coded_layout.hpp - byte layout of the image of
// cpp/trie/detail/front_coded.hpp

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "cpp/trie/detail/symbol_table.hpp"
#include "cpp/trie/image.hpp"

namespace gputext {

constexpr std::uint32_t kBucketWords = 32;
constexpr std::size_t kSeparatorBytes = 16;
/// In a head, and for a first word.
constexpr std::uint32_t kMostInHead = 15, kMostFirst = 255;

/// The first 16 bytes of a word, zeros behind a shorter one, in the order of the bytes.
struct Separator {
    std::uint64_t high, low;

    bool operator==(const Separator&) const = default;
    bool operator<=(const Separator& other) const {
        return (high < other.high) | ((high == other.high) & (low <= other.low));
    }
};

inline Separator separator_of(std::string_view word) {
    std::uint64_t parts[2] = {};
    std::memcpy(parts, word.data(), std::min(word.size(), kSeparatorBytes));
    return {__builtin_bswap64(parts[0]), __builtin_bswap64(parts[1])};
}

template <class T>
T load(const std::uint8_t* from) {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// A bucket taken apart. `excess` goes down as it is read.
struct Bucket {
    std::uint32_t words;
    std::uint32_t first_length;
    const std::uint8_t* heads;  // of the words from the second on
    const std::uint8_t* tail;
    const std::uint8_t* codes;
    const std::uint8_t* excess;

    /// The two numbers of a word's head: bytes shared with the word before, and codes.
    std::uint32_t shared_of(std::uint8_t head) {
        const std::uint32_t shared = head >> 4;
        return shared == kMostInHead ? shared + next_excess() : shared;
    }
    std::uint32_t codes_of(std::uint8_t head) {
        const std::uint32_t count = (head & 15) + 1;
        return count == kMostInHead + 1 ? count + next_excess() : count;
    }

    std::uint32_t next_excess() {
        std::uint32_t number = 0;
        for (unsigned shift = 0;; shift += 7) {
            const std::uint8_t byte = *--excess;
            number |= std::uint32_t{byte & 127u} << shift;
            if (byte < 128) return number;
        }
    }
};

/// The parts of an image, and the symbols, unpacked.
struct FrontCodedLayout {
    std::uint32_t words = 0;
    std::uint32_t bucket_count = 0;
    const std::uint8_t* separators = nullptr;
    const std::uint8_t* offsets = nullptr;
    std::span<const std::uint8_t> buckets;
    SymbolTable symbols;

    Separator separator(std::uint32_t bucket) const {
        return load<Separator>(separators + bucket * kSeparatorBytes);
    }
    std::uint32_t offset(std::uint32_t bucket) const {
        return load<std::uint32_t>(offsets + bucket * sizeof(std::uint32_t));
    }
    std::uint32_t words_of(std::uint32_t bucket) const {
        return std::min(kBucketWords, words - bucket * kBucketWords);
    }
    Bucket bucket(std::uint32_t number) const {
        const std::uint8_t* const begin = buckets.data() + offset(number);
        Bucket bucket{words_of(number), begin[0], begin + 1,
                      nullptr,          nullptr,  buckets.data() + offset(number + 1)};
        if (bucket.first_length == kMostFirst) bucket.first_length += bucket.next_excess();
        bucket.tail = bucket.heads + bucket.words - 1;
        bucket.codes = bucket.tail + tail_length(bucket.first_length);
        return bucket;
    }

    static std::size_t tail_length(std::size_t first_length) {
        return first_length > kSeparatorBytes ? first_length - kSeparatorBytes : 0;
    }
};

/// Checks that the parts fill the image, and the symbols; nothing in the buckets.
Result<FrontCodedLayout> read_front_layout(std::span<const std::uint8_t> image);

}  // namespace gputext
