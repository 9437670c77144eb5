// kernels/documents/detail/edit_limits.hpp - a threshold of edit rates as a table of distances

#pragma once

#include <cstdint>
#include <vector>

#include "cpp/documents/ctph.hpp"
#include "cpp/documents/edit_distance.hpp"

namespace gputext::gpu {

/// most_edits_within for every sum of two lengths of signature parts: the same division as the
/// CPU's test, so that no device has to divide.
inline std::vector<std::uint16_t> most_edits_by_length(double rate) {
    std::vector<std::uint16_t> most(2 * Ctph::max_length + 1);
    for (std::size_t sum = 0; sum < most.size(); ++sum)
        most[sum] = static_cast<std::uint16_t>(most_edits_within(rate, sum));
    return most;
}

}  // namespace gputext::gpu
