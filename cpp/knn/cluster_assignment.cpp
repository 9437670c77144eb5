#include "cpp/knn/cluster_assignment.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gputext {

int bits_of_terms(std::size_t items) {
    return std::min(50, 62 - static_cast<int>(std::bit_width(items)));
}

ClusterMeans::ClusterMeans(Metric metric, const Vectors& items, double largest)
    : directions_(metric == Metric::cosine),
      exponent_(bits_of_terms(items.rows) - 1 -
                std::ilogb(directions_ ? 1.0 : std::max(largest, 0x1p-200))) {}

void ClusterMeans::mean(std::span<const std::int64_t> sums, std::int64_t size,
                        float* centroid) const {
    if (size == 0) return;
    const double factor = std::scalbn(1.0, -exponent_);  // within the range of a double
    const auto element = [&](std::int64_t sum) {
        return static_cast<float>(static_cast<double>(sum) / static_cast<double>(size) * factor);
    };
    if (directions_ && std::ranges::all_of(sums, [&](auto sum) { return element(sum) == 0; }))
        return;
    std::ranges::transform(sums, centroid, element);
}

}  // namespace gputext
