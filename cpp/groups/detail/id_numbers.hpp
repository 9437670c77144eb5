// cpp/groups/detail/id_numbers.hpp - numbers the distinct ones of many ids in their order

#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

// ---- Division of keys by their highest bits ----

/// Divides keys by their highest bits, so that the parts are in the order of their keys.
class KeyParts {
public:
    /// For so many keys: about six a part, where keys up to `greatest`, which is above 0, and so
    /// many bits allow it.
    KeyParts(std::uint64_t greatest, std::size_t keys, unsigned most_bits) {
        const auto key_bits = static_cast<unsigned>(std::bit_width(greatest));
        const auto wanted = static_cast<unsigned>(std::bit_width(keys / 8));
        const unsigned bits = std::min({key_bits, most_bits, std::max(wanted, 1u)});
        shift_ = key_bits - bits;
        count_ = (greatest >> shift_) + 1;
    }

    std::size_t of(std::uint64_t key) const { return key >> shift_; }
    std::size_t count() const { return count_; }

    /// The bits of a key that its part does not tell, and how many they are.
    std::uint64_t rest(std::uint64_t key) const { return key & ((std::uint64_t{1} << shift_) - 1); }
    unsigned rest_bits() const { return shift_; }
    std::uint64_t key(std::size_t part, std::uint64_t rest) const { return part << shift_ | rest; }

private:
    unsigned shift_;
    std::size_t count_;
};

/// Ends of parts that lie one behind the other, from their sizes.
template <class Size>
void sum_up(std::span<Size> sizes) {
    Size end = 0;
    for (Size& size : sizes) size = end += size;
}

// ---- Ranks of keys among the distinct ones, on one thread ----

/// Working memory for rank_keys(), which a thread uses again for its next keys. Of n keys it takes
/// at most 12n bytes, less than a megabyte of them for counters.
struct KeyRankSpace {
    std::vector<std::uint64_t> packed;
    std::vector<std::uint32_t> ends;
};

/// Replaces the first keys by the distinct ones, ascending, and gives each key the number of
/// distinct ones below it, at the place where it was. Returns how many are distinct. There are
/// fewer than 2^32 keys. O(n) for keys that are spread evenly, O(n log(greatest - least)) for any.
/// Error: cancelled, which leaves any keys.
Result<std::uint32_t> rank_keys(std::span<std::uint64_t> keys, std::span<std::uint32_t> ranks,
                                KeyRankSpace& space, Stop stop);

/// Ids that are numbered by their order.
struct IdNumbers {
    std::unique_ptr<std::int64_t[]> ids;       // each once, ascending
    std::uint32_t count = 0;                   // of these
    std::unique_ptr<std::uint32_t[]> numbers;  // of the ids that were given, at their places
};

/// The least and the greatest id.
struct IdRange {
    std::int64_t least, greatest;

    /// The difference of the greatest and the least id.
    std::uint64_t distance() const {
        return static_cast<std::uint64_t>(greatest) - static_cast<std::uint64_t>(least);
    }
};

/// Finds the range of at least one id. Error: cancelled.
Result<IdRange> range_of_ids(std::span<const std::int64_t> ids, Execution& execution);

/// Bytes that number_ids() takes at most for each id, and what is left of them for each id that
/// was given, and for each that is distinct.
inline constexpr std::uint64_t kBytesToNumberId = 24;
inline constexpr std::uint64_t kBytesOfNumber = sizeof(std::uint32_t);
inline constexpr std::uint64_t kBytesOfNumberedId = sizeof(std::int64_t);

/// Numbers the ids, which lie in that range and are fewer than 2^32 - 1. They are divided by their
/// highest bits over all threads, and each part is sorted by one thread (key_ranks.hpp). O(n)
/// for ids that are spread evenly, O(n log(greatest - least)) for any. Error: cancelled.
Result<IdNumbers> number_ids(std::span<const std::int64_t> ids, const IdRange& range,
                             Execution& execution);

}  // namespace gputext
