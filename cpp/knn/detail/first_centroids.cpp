#include "cpp/knn/detail/first_centroids.hpp"

#include <algorithm>
#include <cmath>

#include "cpp/knn/cluster_assignment.hpp"

namespace gputext {
namespace {

/// Cosine distances below this are of rounding, as much as of different directions.
constexpr double kLeastCosineDistance = 0x1p-40;

}  // namespace

DistanceWeight::DistanceWeight(Metric metric, double largest_distance, std::size_t items)
    : metric_(metric),
      scale_(std::scalbn(1.0, bits_of_terms(items) - (metric == Metric::cosine ? 1 : 2))) {
    const int exponent = largest_distance > 0 ? -std::ilogb(largest_distance) : 0;
    constexpr int most = 1023;
    factor_ = std::scalbn(1.0, std::min(exponent, most));
    rest_ = std::scalbn(1.0, std::max(exponent - most, 0));
}

std::uint64_t DistanceWeight::operator()(double distance) const {
    if (metric_ == Metric::cosine && distance < kLeastCosineDistance) return 0;
    const double y = distance * factor_ * rest_;  // rounded once: one of the two is exact
    return static_cast<std::uint64_t>((metric_ == Metric::cosine ? y : y * y) * scale_);
}

FixedWeights::FixedWeights(Metric metric, std::span<const double> distances)
    : metric_(metric),
      distances_(distances),
      begins_((distances.size() + block_items - 1) / block_items + 1) {}

Status FixedWeights::fix(Execution& execution) {
    const std::size_t blocks = begins_.size() - 1;
    const auto block = [&](std::size_t number) {
        const std::size_t begin = number * block_items;
        return distances_.subspan(begin, std::min(block_items, distances_.size() - begin));
    };
    constexpr std::size_t step = 16;
    const auto for_each_block = [&](const auto& visit) {
        return execution.parallel_for(
            (blocks + step - 1) / step, [&](std::size_t task, unsigned worker) -> Status {
                const std::size_t end = std::min(blocks, (task + 1) * step);
                for (std::size_t b = task * step; b < end; ++b) visit(b, worker);
                return {};
            });
    };
    std::vector<double> largest(execution.threads());
    Status status = for_each_block([&](std::size_t b, unsigned worker) {
        for (const double distance : block(b))
            largest[worker] = std::max(largest[worker], distance);
    });
    if (!status.ok()) return status;
    weight_.emplace(metric_, *std::max_element(largest.begin(), largest.end()), distances_.size());
    status = for_each_block([&](std::size_t b, unsigned) {
        std::uint64_t sum = 0;
        for (const double distance : block(b)) sum += (*weight_)(distance);
        begins_[b + 1] = sum;
    });
    if (!status.ok()) return status;
    for (std::size_t b = 0; b < blocks; ++b) begins_[b + 1] += begins_[b];
    return {};
}

FixedWeights::Hit FixedWeights::hit(std::uint64_t draw) const {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), draw);
    const auto block = static_cast<std::size_t>(after - begins_.begin()) - 1;
    std::uint64_t above = draw - begins_[block];
    for (std::size_t item = block * block_items;; ++item) {
        const std::uint64_t weight = (*weight_)(distances_[item]);
        if (above < weight) return {item, above};
        above -= weight;
    }
}

}  // namespace gputext
