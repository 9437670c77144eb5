#include "cpp/knn/scattered_neighbours.hpp"

#include <algorithm>
#include <utility>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

constexpr std::size_t kQueriesOfStep = std::size_t{1} << 14;

}  // namespace

void ScatteredNeighbours::add(std::vector<std::uint32_t> queries, Neighbours found) {
    pieces_.push_back({std::move(queries), std::move(found)});
}

Status ScatteredNeighbours::put_together(std::size_t queries, Execution& execution,
                                         Neighbours& answer) {
    struct Step {
        const Piece* piece;
        std::size_t begin, end;
    };
    std::vector<Step> steps;
    answer = {};
    for (const Piece& piece : pieces_) {
        answer.rescored += piece.found.rescored;
        answer.escalated += piece.found.escalated;
        for (std::size_t begin = 0; begin < piece.queries.size(); begin += kQueriesOfStep)
            steps.push_back(
                {&piece, begin, std::min(piece.queries.size(), begin + kQueriesOfStep)});
    }
    execution.begin_phase("joining neighbours", 2 * steps.size());
    if (!stoppable_assign(answer.begins, queries + 1, {}, execution.stop()))
        return Status::cancelled();
    GPUTEXT_TRY(execution.parallel_for(steps.size(), [&](std::size_t s, unsigned) {
        const auto& [piece, begin, end] = steps[s];
        const auto& begins = piece->found.begins;
        for (std::size_t n = begin; n < end; ++n)
            answer.begins[piece->queries[n] + std::size_t{1}] = begins[n + 1] - begins[n];
        return Status();
    }));
    for (std::size_t query = 0; query < queries; ++query) {
        if (query % kLookEvery == 0 && execution.stop_requested()) return Status::cancelled();
        answer.begins[query + 1] += answer.begins[query];
    }
    const std::uint64_t all = answer.begins.back();
    if (!stoppable_assign(answer.items, all, {}, execution.stop()) ||
        !stoppable_assign(answer.distances, all, {}, execution.stop()))
        return Status::cancelled();
    GPUTEXT_TRY(execution.parallel_for(steps.size(), [&](std::size_t s, unsigned) -> Status {
        const auto& [piece, begin, end] = steps[s];
        const Neighbours& found = piece->found;
        std::uint64_t copied = 0;
        for (std::size_t n = begin; n < end; ++n) {
            const auto from = static_cast<std::ptrdiff_t>(found.begins[n]);
            const std::uint64_t count = found.begins[n + 1] - found.begins[n];
            const auto to = static_cast<std::ptrdiff_t>(answer.begins[piece->queries[n]]);
            std::copy_n(found.items.begin() + from, count, answer.items.begin() + to);
            std::copy_n(found.distances.begin() + from, count, answer.distances.begin() + to);
            copied += count;
            if (copied < kLookEvery) continue;
            copied = 0;
            if (execution.stop_requested()) return Status::cancelled();
        }
        return {};
    }));
    pieces_.clear();
    return {};
}

}  // namespace gputext
