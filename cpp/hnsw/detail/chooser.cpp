#include "cpp/hnsw/detail/chooser.hpp"

#include <algorithm>

namespace gputext {

std::span<const NearRow> Chooser::choose(std::uint32_t row, std::span<const NearRow> sorted,
                                         std::size_t limit, double slack) {
    constexpr std::size_t ahead = 4;  // rows are anywhere in memory
    if (sorted.size() <= limit) return sorted;
    rows_.begin(row);
    chosen_.clear();
    left_.clear();
    for (std::size_t i = 0; i < sorted.size() && chosen_.size() < limit; ++i) {
        if (i + ahead < sorted.size()) rows_.nearness().prefetch(sorted[i + ahead].row);
        if (rows_.has_nearer(sorted[i].row, sorted[i].distance, sorted[i].distance / slack)) {
            left_.push_back(sorted[i]);
        } else {
            chosen_.push_back(sorted[i]);
            rows_.choose();
        }
    }
    const std::size_t more = std::min(limit - chosen_.size(), left_.size());
    chosen_.insert(chosen_.end(), left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(more));
    return chosen_;
}

void Chooser::nearest_of(std::uint32_t row, std::size_t begin, double radius,
                         std::vector<NearRow>& nearest) {
    nearest.clear();
    Nearness& nearness = rows_.nearness();
    nearness.set(row);
    for (auto before = static_cast<std::uint32_t>(begin); before < row; ++before) {
        const double distance = nearness.within(radius, before);
        if (distance <= radius) nearest.push_back({distance, before});
    }
    std::sort(nearest.begin(), nearest.end());
}

}  // namespace gputext
