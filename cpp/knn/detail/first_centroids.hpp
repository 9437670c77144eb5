// cpp/knn/detail/first_centroids.hpp - draws the first centroids of cpp/knn/k_means.hpp

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpp/base/counter_random.hpp"
#include "cpp/base/execution.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext {

inline constexpr std::size_t kMostChosenAtOnce = 96;
inline constexpr std::size_t kMostVoidDraws = 64;

/// The draws, r(0), r(1) ... of the definition.
class CentroidDraws {
public:
    explicit CentroidDraws(std::uint64_t seed) : key_(random_key(seed, 0x6b6d, 0)) {}
    /// The next one below `bound`.
    std::uint64_t below(std::uint64_t bound) {
        return wide_random_below(random_bits(key_, next_++), bound);
    }

private:
    std::uint64_t key_, next_ = 0;
};

/// Weights of distances as integers, once the largest distance is known.
class DistanceWeight {
public:
    DistanceWeight(Metric metric, double largest_distance, std::size_t items);
    std::uint64_t operator()(double distance) const;

private:
    Metric metric_;
    double factor_, rest_;  // powers of two, as some are beyond the range of one double
    double scale_;
};

/// The weights as they were fixed, of given distances, and their sums. Keeps a sum a block of items
/// and computes the others again: the distances must stay until the next call of fix().
class FixedWeights {
public:
    FixedWeights(Metric metric, std::span<const double> distances);

    /// Bytes for each item, rounded up.
    static constexpr std::size_t bytes_of_item = 1;

    /// O(items). Error: cancelled.
    Status fix(Execution& execution);
    /// The sum of all; 0 where all distances are 0.
    std::uint64_t total() const { return begins_.back(); }

    struct Hit {
        std::size_t item;
        std::uint64_t above;  // the draw minus the sum of the weights before the item
    };
    Hit hit(std::uint64_t draw) const;
    /// The current weight of an item at this distance.
    std::uint64_t weight(double distance) const { return (*weight_)(distance); }

private:
    static constexpr std::size_t block_items = 1024;

    Metric metric_;
    std::span<const double> distances_;
    std::optional<DistanceWeight> weight_;
    std::vector<std::uint64_t> begins_;  // by block, the sum of the weights before it
};

}  // namespace gputext
