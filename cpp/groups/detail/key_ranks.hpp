// cpp/groups/detail/key_ranks.hpp - ranks of keys among the distinct ones, on one thread

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

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

}  // namespace gputext
