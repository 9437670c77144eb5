// cpp/knn/recall.hpp - judges what an approximate search returned by exact distances
//
// An item counts as found if its exact distance is at most that of the k-th nearest item. So it
// does not matter which of several items at that distance were returned, nor how precisely whoever
// searched has computed: distances are those of cpp/knn/distance.hpp, to the bit.

#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext {

/// What is known of the items that were returned for one query.
struct ReturnedItems {
    std::uint32_t count = 0;   // different ones
    std::uint32_t within = 0;  // of these, those whose distance is at most the limit
    double farthest = 0;       // distance; NaN where no item has one
};

class RecallJudge {
public:
    RecallJudge() = default;
    RecallJudge(const RecallJudge&) = delete;
    RecallJudge& operator=(const RecallJudge&) = delete;

    /// The vectors, which stay as they are: both dense or both sparse, of the same dimensions,
    /// checked by largest_magnitude(). O(1), or O(stored elements * log) when sparse. Error:
    /// cancelled.
    Status set(Metric metric, const Vectors& queries, const Vectors& items, Stop stop);

    /// Judges the items by their numbers, whose order it changes; equal numbers count once. With a
    /// limit of NaN no item is within it. O(items * (dimensions + log)).
    ReturnedItems judge(std::size_t query, std::span<std::uint32_t> items, double limit);

private:
    FewerColumns fewer_;
    std::optional<Distances> distances_;
};

}  // namespace gputext
