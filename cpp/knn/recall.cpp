#include "cpp/knn/recall.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gputext {

Status RecallJudge::set(Metric metric, const Vectors& queries, const Vectors& items, Stop stop) {
    GPUTEXT_TRY(fewer_.set(queries, items, stop));
    distances_.emplace(metric, fewer_.queries(), fewer_.items(), best_simd());
    return {};
}

ReturnedItems RecallJudge::judge(std::size_t query, std::span<std::uint32_t> items, double limit) {
    std::sort(items.begin(), items.end());
    const auto end = std::unique(items.begin(), items.end());
    ReturnedItems returned;
    returned.farthest = std::numeric_limits<double>::quiet_NaN();
    if (items.empty()) return returned;
    distances_->set_query(query);
    for (auto item = items.begin(); item != end; ++item) {
        const double distance = (*distances_)(*item);
        ++returned.count;
        if (distance <= limit) ++returned.within;
        // The greater one; if one is NaN, the other.
        returned.farthest = std::fmax(returned.farthest, distance);
    }
    return returned;
}

}  // namespace gputext
