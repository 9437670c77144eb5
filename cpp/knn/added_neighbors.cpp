#include "cpp/knn/added_neighbors.hpp"

#include <utility>

namespace gputext {
namespace {

/// Queries between two looks at the stop request.
constexpr std::size_t kQueriesAtOnce = 256;

}  // namespace

Status merge_added(const Neighbors& added, std::span<const std::uint32_t> before, std::size_t first,
                   std::size_t k, Stop stop, Neighbors& answer) {
    answer.rescored += added.rescored;
    answer.escalated += added.escalated;
    if (added.items.empty()) return {};
    Neighbors merged;
    merged.begins = {0};
    merged.begins.reserve(answer.begins.size());
    merged.items.reserve(answer.items.size() + added.items.size());
    merged.distances.reserve(answer.items.size() + added.items.size());
    merged.rescored = answer.rescored;
    merged.escalated = answer.escalated;
    for (std::size_t query = 0; query + 1 < answer.begins.size(); ++query) {
        if (query % kQueriesAtOnce == 0 && stop()) return Status::cancelled();
        std::uint64_t old = answer.begins[query], later = added.begins[query];
        const std::uint64_t old_end = answer.begins[query + 1], end = added.begins[query + 1];
        for (std::size_t found = 0; found < k && (old < old_end || later < end); ++found) {
            const bool takes_added =
                old == old_end ||
                (later < end && (added.distances[later] != answer.distances[old]
                                     ? added.distances[later] < answer.distances[old]
                                     : before[added.items[later]] <= answer.items[old]));
            merged.items.push_back(takes_added
                                       ? static_cast<std::uint32_t>(first + added.items[later])
                                       : answer.items[old]);
            merged.distances.push_back(takes_added ? added.distances[later]
                                                   : answer.distances[old]);
            ++(takes_added ? later : old);
        }
        merged.begins.push_back(merged.items.size());
    }
    answer = std::move(merged);
    return {};
}

}  // namespace gputext
