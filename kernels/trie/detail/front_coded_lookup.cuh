// kernels/trie/detail/front_coded_lookup.cuh - looks a word up in a dictionary of
// cpp/trie/detail/front_coded.hpp
//
// What FrontCodedTrie::lookup does, by one thread and with few reads: most of the binary search is
// in a sample of the separators that lies in shared memory, the bytes of a bucket are read by
// vectors of 16, and the codes of its words are compared without expanding them.
//
// Each bucket has a line beside the image, made when that comes to the device, of what tells most
// words from the one that is wanted: 128 bytes, four a word. It is compared two words at a time,
// without a loop in which threads of a warp would wait for each other.

#pragma once

#include <cstdint>

#include "cpp/trie/detail/front_coded_layout.hpp"
#include "kernels/base/binary_search.cuh"
#include "kernels/trie/detail/device_words.cuh"

namespace gputext::gpu {

/// What a bucket's words begin with. Of word i, 1 to 31, a number of 16 bits that is the larger the
/// fewer bytes it shares with the word before (below kMostShared), and of those that share equally
/// many, the larger its first byte behind these; its uppermost bit is set.
struct BucketLine {
    static constexpr std::uint32_t kMostShared = 127;

    std::uint32_t begins[kBucketWords / 2];  // word i, and above it word i + 16
    /// Where a word's codes end. Of word 0, which has none: the first word's length and kPlain; 0
    /// if a number does not fit, and then the others are not to be used.
    std::uint16_t end[kBucketWords];
    static constexpr std::uint32_t kPlain = 1 << 8;

    __host__ __device__ static std::uint32_t begin_of(std::uint32_t shared, std::uint32_t first) {
        return (kMostShared - shared) << 8 | first;
    }
};
static_assert(sizeof(BucketLine) == 128);

/// Pointers to the parts of an image on a device.
struct FrontCodedDictionary {
    const WordKey* separators = nullptr;
    const std::uint32_t* offsets = nullptr;
    const std::uint8_t* buckets = nullptr;
    const SymbolTable* symbols = nullptr;
    const BucketLine* lines = nullptr;  // may be missing
    std::uint32_t words = 0;
    std::uint32_t bucket_count = 0;
};

/// Every `step`-th separator from the first on.
struct SeparatorSample {
    const WordKey* separators = nullptr;
    std::uint32_t count = 0, step = 1;
};

/// What the codes stand for: as in SymbolTable.
struct FrontCodedSymbols {
    const std::uint64_t* bytes = nullptr;
    const std::uint8_t* lengths = nullptr;
};

/// Looks up one word.
class FrontCodedLookup {
public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    __host__ __device__ FrontCodedLookup(const FrontCodedDictionary& dictionary,
                                         const SeparatorSample& sample,
                                         const FrontCodedSymbols& symbols, const std::uint8_t* word,
                                         std::uint32_t length)
        : dictionary_(dictionary),
          sample_(sample),
          symbols_(symbols),
          word_(word),
          length_(length),
          key_(key_of(word, length)) {}

    /// The code of the word, or kNone. The dictionary is not empty. O(log buckets + length).
    __host__ __device__ std::uint32_t code();

    /// The line of a bucket. Looks at no word.
    __host__ __device__ BucketLine line_of(std::uint32_t number);

private:
    enum class Order { before, equal, behind };

    /// A bucket's begin, and what is above what its heads have room for, which goes downwards.
    struct Bucket {
        const std::uint8_t* begin;
        const std::uint32_t* end_offset;
        const std::uint8_t* buckets;
        const std::uint8_t* excess = nullptr;

        __host__ __device__ std::uint32_t next_excess() {
            if (excess == nullptr) excess = buckets + *end_offset;
            std::uint32_t number = 0;
            for (unsigned shift = 0;; shift += 7) {
                const std::uint8_t byte = *--excess;
                number |= std::uint32_t{byte & 127u} << shift;
                if (byte < 128) return number;
            }
        }
        __host__ __device__ std::uint32_t shared_of(std::uint32_t head) {
            const std::uint32_t shared = head >> 4;
            return shared == kMostInHead ? shared + next_excess() : shared;
        }
        __host__ __device__ std::uint32_t codes_of(std::uint32_t head) {
            const std::uint32_t count = (head & 15) + 1;
            return count == kMostInHead + 1 ? count + next_excess() : count;
        }
    };

    __host__ __device__ Bucket bucket(std::uint32_t number) const {
        return {dictionary_.buckets + dictionary_.offsets[number], &dictionary_.offsets[number + 1],
                dictionary_.buckets};
    }
    __host__ __device__ std::uint32_t words_of(std::uint32_t number) const {
        const std::uint32_t left = dictionary_.words - number * kBucketWords;
        return left < kBucketWords ? left : kBucketWords;
    }
    __host__ __device__ static std::uint32_t tail_of(std::uint32_t first_length) {
        const auto separator = static_cast<std::uint32_t>(kSeparatorBytes);
        return first_length > separator ? first_length - separator : 0;
    }

    __host__ __device__ std::uint32_t last_bucket() const;
    __host__ __device__ bool fits(std::uint32_t number) const;
    __host__ __device__ bool step_back(std::uint32_t& number) const;
    __host__ __device__ std::uint32_t code_in(std::uint32_t number);
    __host__ __device__ std::uint32_t code_in_plain(std::uint32_t number, const BucketLine& line,
                                                    std::uint32_t common);
    __host__ __device__ std::uint32_t shared_with(const WordKey& first) const {
        return first.high != key_.high ? zero_bytes_above(first.high ^ key_.high)
               : first.low != key_.low ? 8 + zero_bytes_above(first.low ^ key_.low)
                                       : static_cast<std::uint32_t>(kSeparatorBytes);
    }
    __host__ __device__ std::uint32_t first_of(const std::uint8_t* codes);
    __host__ __device__ Order compare(const std::uint8_t* codes, std::uint32_t count,
                                      std::uint64_t& wanted, std::uint32_t& common);
    __host__ __device__ std::uint64_t wanted_from(std::uint32_t at) const;

    const FrontCodedDictionary& dictionary_;
    const SeparatorSample& sample_;
    const FrontCodedSymbols& symbols_;
    const std::uint8_t* word_;
    std::uint32_t length_;
    WordKey key_;
    ByteReader codes_;
};

/// The last bucket whose separator is not above the key, or the first one.
__host__ __device__ inline std::uint32_t FrontCodedLookup::last_bucket() const {
    std::uint32_t begin = 0;
    for (std::uint32_t left = sample_.count; left > 1;) {
        const std::uint32_t half = left / 2;
        if (sample_.separators[begin + half] <= key_) begin += half;
        left -= half;
    }
    begin *= sample_.step;
    std::uint32_t left = dictionary_.bucket_count - begin;
    if (left > sample_.step) left = sample_.step;
    while (left > 1) {
        const std::uint32_t half = left / 2;
        if (dictionary_.separators[begin + half] <= key_) begin += half;
        left -= half;
    }
    return begin;
}

/// Whether a bucket's first word, whose separator is not above the key, is not behind the word.
__host__ __device__ inline bool FrontCodedLookup::fits(std::uint32_t number) const {
    if (!(dictionary_.separators[number] == key_)) return true;
    Bucket own = bucket(number);
    std::uint32_t first = own.begin[0];
    if (first == kMostFirst) first += own.next_excess();
    const std::uint32_t tail = tail_of(first), rest = tail_of(length_);
    const std::uint32_t both = tail < rest ? tail : rest;
    if (both > 0) {
        const std::uint8_t* const at = own.begin + words_of(number);
        const std::uint32_t same = common_bytes(at, word_ + kSeparatorBytes, both);
        if (same < both) return at[same] < word_[kSeparatorBytes + same];
    }
    return first <= length_;
}

/// Makes `number`, whose separator is the key, the last bucket whose first word is not behind the
/// word; false when there is none. Many buckets may have one separator.
__host__ __device__ inline bool FrontCodedLookup::step_back(std::uint32_t& number) const {
    if (fits(number)) return true;
    std::uint32_t end = number, step = 1;  // `end` does not fit
    while (end >= step && !fits(end - step)) {
        end -= step;
        step *= 2;
    }
    const std::uint32_t begin = end >= step ? end - step : 0;  // fits, or is the first one
    if (begin == 0 && !fits(0)) return false;
    number =
        partition_point(begin + 1, end, [this](std::uint32_t other) { return fits(other); }) - 1;
    return true;
}

/// Eight bytes of the word, zeros behind its end. By one way for all threads: those in the key are
/// not taken from there.
__host__ __device__ inline std::uint64_t FrontCodedLookup::wanted_from(std::uint32_t at) const {
    return load_up_to_eight(word_ + at, length_ - at);
}

/// The first byte that the codes stand for, or 255 where that is not in the table.
__host__ __device__ inline std::uint32_t FrontCodedLookup::first_of(const std::uint8_t* codes) {
    const std::uint32_t code = codes_[codes];
    return code == SymbolTable::kEscape
               ? 255
               : reinterpret_cast<const std::uint8_t*>(symbols_.bytes)[8 * code];
}

/// Order of the word wanted and the word that shares its first `common` bytes and continues with
/// these codes; `common` becomes the number of bytes that both share. `wanted` is
/// wanted_from(common), before and afterwards.
__host__ __device__ inline FrontCodedLookup::Order FrontCodedLookup::compare(
    const std::uint8_t* codes, std::uint32_t count, std::uint64_t& wanted, std::uint32_t& common) {
    for (const std::uint8_t* const end = codes + count; codes < end; ++codes) {
        const std::uint8_t code = codes_[codes];
        std::uint64_t symbol;
        std::uint32_t length = 1;
        if (code == SymbolTable::kEscape) {
            symbol = codes_[++codes];
        } else {
            symbol = symbols_.bytes[code];
            length = symbols_.lengths[code];
        }
        const std::uint32_t left = length_ - common;
        const std::uint64_t different = lowest_bytes(symbol ^ wanted, length);
        const std::uint32_t same = different == 0 ? length : zero_bytes_below(different);
        if (same >= left && left < length) {
            common = length_;
            return Order::behind;
        }
        common += same;
        const bool less = static_cast<std::uint8_t>(symbol >> 8 * (same & 7)) <
                          static_cast<std::uint8_t>(wanted >> 8 * (same & 7));
        if (same > 0) wanted = wanted_from(common);
        if (different != 0) return less ? Order::before : Order::behind;
    }
    return common == length_ ? Order::equal : Order::before;
}

__host__ __device__ inline std::uint32_t FrontCodedLookup::code_in(std::uint32_t number) {
    const WordKey first = dictionary_.separators[number];
    const std::uint32_t words = words_of(number);
    Bucket own = bucket(number);
    ByteReader heads;
    std::uint32_t first_length = heads[own.begin];
    if (first_length == kMostFirst) first_length += own.next_excess();
    const std::uint32_t shorter = length_ < first_length ? length_ : first_length;
    std::uint32_t common = shared_with(first);
    const std::uint8_t* const tail = own.begin + words;
    if (common == kSeparatorBytes && shorter > kSeparatorBytes)
        common += common_bytes(tail, word_ + kSeparatorBytes,
                               shorter - static_cast<std::uint32_t>(kSeparatorBytes));
    if (common > shorter) common = shorter;
    const std::uint32_t base = number * kBucketWords;
    if (common == length_ && common == first_length) return base;

    // The word before shares `common` bytes with the one wanted, which is behind it. Threads of a
    // warp go together through words that their first bytes tell from the one wanted, and together
    // compare what is left: else each would wait while others compare.
    const std::uint8_t* codes = tail + tail_of(first_length);
    std::uint64_t wanted = wanted_from(common);
    for (std::uint32_t i = 1;; ++i) {
        std::uint32_t shared = 0, count = 0;
        for (; i < words; ++i) {
            const std::uint32_t head = heads[own.begin + i];
            shared = own.shared_of(head);
            count = own.codes_of(head);
            if (shared < common ||
                (shared == common && first_of(codes) >= static_cast<std::uint8_t>(wanted)))
                break;
            codes += count;
        }
        if (i >= words || shared < common) return kNone;
        const Order order = compare(codes, count, wanted, common);
        if (order != Order::before) return order == Order::equal ? base + i : kNone;
        codes += count;
    }
}

__host__ __device__ inline BucketLine FrontCodedLookup::line_of(std::uint32_t number) {
    BucketLine line{};
    for (std::uint32_t& begins : line.begins) begins = ~0u;
    const std::uint32_t words = words_of(number);
    Bucket own = bucket(number);
    const std::uint32_t first_length = own.begin[0];
    bool plain = first_length < kMostFirst;
    const std::uint8_t* const codes = own.begin + words + tail_of(first_length);
    std::uint32_t end = 0;
    for (std::uint32_t i = 1; plain && i < words; ++i) {
        const std::uint32_t shared = own.shared_of(own.begin[i]);
        const std::uint32_t count = own.codes_of(own.begin[i]);
        const std::uint32_t code = codes[end];
        const std::uint32_t first = code == SymbolTable::kEscape
                                        ? codes[end + 1]
                                        : static_cast<std::uint8_t>(symbols_.bytes[code]);
        end += count;
        line.end[i] = static_cast<std::uint16_t>(end);
        plain = shared < BucketLine::kMostShared && end < 65536;
        if (plain) {
            const std::uint32_t unused = 0x7fffu - BucketLine::begin_of(shared, first);
            line.begins[i % 16] -= unused << i / 16 * 16;
        }
    }
    if (plain) line.end[0] = static_cast<std::uint16_t>(first_length | BucketLine::kPlain);
    return line;
}

/// The first word of the bucket shares `common` bytes with the one wanted, which is behind it.
__host__ __device__ inline std::uint32_t FrontCodedLookup::code_in_plain(std::uint32_t number,
                                                                         const BucketLine& line,
                                                                         std::uint32_t common) {
    const auto* const vectors = reinterpret_cast<const uint4*>(line.begins);
    const uint4 begins[4] = {vectors[0], vectors[1], vectors[2], vectors[3]};
    // Words that have not been looked at
    const std::uint32_t words = words_of(number);
    const std::uint8_t* const codes = dictionary_.buckets + dictionary_.offsets[number] + words +
                                      tail_of(line.end[0] & (BucketLine::kPlain - 1));
    std::uint64_t wanted = wanted_from(common);
    std::uint32_t left = words < kBucketWords ? (1u << words) - 2 : ~1u;
    while (common < BucketLine::kMostShared) {
        // The first word that is not before the one wanted by what its line says.
        const std::uint32_t least =
            BucketLine::begin_of(common, static_cast<std::uint8_t>(wanted)) * 0x00010001u;
        std::uint32_t here = 0;
        // Without a borrow from a number's uppermost bit: it is not below.
        const auto compare_two = [&](std::uint32_t two, unsigned i) {
            here |= ((two - least) & 0x80008000u) >> (15 - i);
        };
        for (unsigned i = 0; i < 4; ++i) {
            compare_two(begins[i].x, 4 * i);
            compare_two(begins[i].y, 4 * i + 1);
            compare_two(begins[i].z, 4 * i + 2);
            compare_two(begins[i].w, 4 * i + 3);
        }
        here &= left;
        if (here == 0) return kNone;
        const std::uint32_t i = lowest_bit(here);
        const std::uint32_t begin = line.begins[i % 16] >> i / 16 * 16 & 0x7fff;
        // It shares less, or there is none.
        if (begin >> 8 != BucketLine::kMostShared - common) return kNone;
        const std::uint32_t at = i == 1 ? 0 : line.end[i - 1];
        const Order order = compare(codes + at, line.end[i] - at, wanted, common);
        if (order != Order::before)
            return order == Order::equal ? number * kBucketWords + i : kNone;
        left &= ~((2u << i) - 1);
    }
    return kNone;
}

__host__ __device__ inline std::uint32_t FrontCodedLookup::code() {
    std::uint32_t number = last_bucket();
    const WordKey separator = dictionary_.separators[number];
    if (!(separator <= key_)) return kNone;
    const std::uint32_t plain = dictionary_.lines == nullptr ? 0 : dictionary_.lines[number].end[0];
    if (plain != 0) {
        const std::uint32_t length = plain & (BucketLine::kPlain - 1);
        const std::uint32_t shorter = length_ < length ? length_ : length;
        std::uint32_t common = shared_with(separator);
        bool behind = false;  // the first word: then it is another bucket
        if (common == kSeparatorBytes) {
            if (shorter > kSeparatorBytes) {
                const std::uint8_t* const tail =
                    dictionary_.buckets + dictionary_.offsets[number] + words_of(number);
                const std::uint8_t* const rest = word_ + kSeparatorBytes;
                const std::uint32_t both = tail_of(shorter);
                const std::uint32_t same = common_bytes(tail, rest, both);
                behind = same < both && tail[same] > rest[same];
                common += same;
            }
            behind |= common >= shorter && length > length_;
        }
        if (common > shorter) common = shorter;
        if (!behind)
            return common == length_ && length == length_
                       ? number * kBucketWords
                       : code_in_plain(number, dictionary_.lines[number], common);
    }
    if (separator == key_ && !step_back(number)) return kNone;
    return code_in(number);
}

}  // namespace gputext::gpu
