#include "cpp/knn/merge_neighbours.hpp"

#include <algorithm>
#include <vector>

namespace gputext {
namespace {

/// Neighbours between two looks at the stop request.
constexpr std::uint64_t kMergedAtOnce = 1 << 16;

}  // namespace

Status merge_neighbours(std::span<const Neighbours> parts,
                        std::span<const std::uint32_t> first_items, std::size_t k,
                        Execution& execution, Neighbours& answer) {
    const std::size_t queries = parts[0].begins.size() - 1;
    execution.begin_phase("merging neighbours", queries);
    answer = {};
    answer.begins.assign(1, 0);
    for (const Neighbours& part : parts) {
        answer.rescored += part.rescored;
        answer.escalated += part.escalated;
    }
    std::vector<std::uint64_t> next(parts.size());
    std::uint64_t looked = 0;
    for (std::size_t query = 0; query < queries; ++query) {
        for (std::size_t part = 0; part < parts.size(); ++part)
            next[part] = parts[part].begins[query];
        for (std::size_t rank = 0; rank < k; ++rank) {
            // The first of those that are equally far has the least number.
            std::size_t nearest = parts.size();
            for (std::size_t part = 0; part < parts.size(); ++part)
                if (next[part] < parts[part].begins[query + 1] &&
                    (nearest == parts.size() ||
                     parts[part].distances[next[part]] < parts[nearest].distances[next[nearest]]))
                    nearest = part;
            if (nearest == parts.size()) break;
            const std::uint64_t from = next[nearest]++;
            answer.items.push_back(first_items[nearest] + parts[nearest].items[from]);
            answer.distances.push_back(parts[nearest].distances[from]);
            if (answer.items.size() - looked < kMergedAtOnce) continue;
            looked = answer.items.size();
            if (execution.stop_requested()) return Status::cancelled();
        }
        answer.begins.push_back(answer.items.size());
        GPUTEXT_TRY(execution.checkpoint());
    }
    return {};
}

}  // namespace gputext
