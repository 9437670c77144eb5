// cpp/knn/detail/sort_few.hpp - sorts a query's neighbours without a branch on a distance
//
// A processor predicts every other comparison of a sort wrongly, which takes longer than to compare
// each of a few distances with all of them in vectors.

#pragma once

#include <cstddef>
#include <vector>

#include "cpp/base/simd.hpp"
#include "cpp/knn/nearest_lists.hpp"

namespace gputext {

/// The most that are sorted so: it takes the square of their number.
inline constexpr std::size_t kFewCandidates = 256;

/// Sorts as std::sort would; no distance may be NaN. False, and nothing done, where there are more
/// than kFewCandidates, or the vectors are not wide enough to pay.
bool sort_few(std::vector<Candidate>& list, Simd simd);

}  // namespace gputext
