// cpp/groups/detail/id_numbers.hpp - numbers the distinct ones of many ids in their order

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// Ids that are numbered by their order.
struct IdNumbers {
    std::unique_ptr<std::int64_t[]> ids;       // each once, ascending
    std::uint32_t count = 0;                   // of these
    std::unique_ptr<std::uint32_t[]> numbers;  // of the ids that were given, at their places
};

/// The least and the greatest id.
struct IdRange {
    std::int64_t least, greatest;

    /// From the least to the greatest.
    std::uint64_t distance() const {
        return static_cast<std::uint64_t>(greatest) - static_cast<std::uint64_t>(least);
    }
};

/// Of at least one id. Error: cancelled.
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
