// cpp/terms/detail/column_counts.hpp - counts, for each column of a sparse matrix, the rows that
// have it

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"

namespace gputext {

/// For each column in how many of these rows, of type float32 or int32, it is not zero. Advances
/// the execution by a step a row. O(stored elements + columns * threads) time, 4 bytes a column and
/// thread; fewer threads where these were more than 256 MiB. Error: cancelled.
Result<std::vector<std::uint32_t>> column_counts(const Vectors& vectors,
                                                 std::span<const std::uint32_t> rows,
                                                 Execution& execution);

}  // namespace gputext
