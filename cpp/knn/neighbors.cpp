#include "cpp/knn/neighbors.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "cpp/base/large_pages.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

constexpr std::size_t kQueriesOfStep = 256;

/// Neighbors between two looks at the stop request.
constexpr std::uint64_t kMergedAtOnce = 1 << 16;

std::uint64_t found_for(std::span<const Neighbors> parts, std::size_t query) {
    std::uint64_t found = 0;
    for (const Neighbors& part : parts) found += part.begins[query + 1] - part.begins[query];
    return found;
}

/// Fills what the answer has room for. `next` is scratch, a number for each part.
Status merge_query(std::span<const Neighbors> parts, std::span<const std::uint32_t> first_items,
                   std::size_t query, std::span<std::uint64_t> next, const Execution& execution,
                   Neighbors& answer) {
    for (std::size_t part = 0; part < parts.size(); ++part) next[part] = parts[part].begins[query];
    for (std::uint64_t at = answer.begins[query]; at < answer.begins[query + 1]; ++at) {
        // Among equal distances the part that comes first has the least number.
        std::size_t nearest = parts.size();
        for (std::size_t part = 0; part < parts.size(); ++part)
            if (next[part] < parts[part].begins[query + 1] &&
                (nearest == parts.size() ||
                 parts[part].distances[next[part]] < parts[nearest].distances[next[nearest]]))
                nearest = part;
        const std::uint64_t from = next[nearest]++;
        answer.items[at] = first_items[nearest] + parts[nearest].items[from];
        answer.distances[at] = parts[nearest].distances[from];
        if (at % kMergedAtOnce == 0 && execution.stop_requested()) return Status::cancelled();
    }
    return {};
}

/// Makes an answer without neighbors that has the sums of the parts' counters.
Neighbors empty_answer(std::span<const Neighbors> parts) {
    Neighbors answer;
    answer.begins.assign(1, 0);
    for (const Neighbors& part : parts) {
        answer.rescored += part.rescored;
        answer.escalated += part.escalated;
    }
    return answer;
}

}  // namespace

Status merge_neighbors(std::span<const Neighbors> parts,
                        std::span<const std::uint32_t> first_items, std::size_t k,
                        Execution& execution, Neighbors& answer) {
    const std::size_t queries = parts[0].begins.size() - 1;
    const std::size_t steps = (queries + kQueriesOfStep - 1) / kQueriesOfStep;
    execution.begin_phase("merging neighbors", steps);
    answer = empty_answer(parts);
    answer.begins.reserve(queries + 1);
    for (std::size_t query = 0; query < queries; ++query)
        answer.begins.push_back(answer.begins.back() +
                                std::min<std::uint64_t>(k, found_for(parts, query)));
    resize_pages(answer.items, answer.begins.back());
    resize_pages(answer.distances, answer.begins.back());
    std::vector<std::uint64_t> next(parts.size() * execution.threads());
    return execution.parallel_for(steps, [&](std::size_t step, unsigned worker) -> Status {
        const auto own = std::span(next).subspan(worker * parts.size(), parts.size());
        const std::size_t end = std::min(queries, (step + 1) * kQueriesOfStep);
        for (std::size_t query = step * kQueriesOfStep; query < end; ++query)
            GPUTEXT_TRY(merge_query(parts, first_items, query, own, execution, answer));
        return {};
    });
}

namespace {

constexpr std::size_t kQueriesOfJoin = std::size_t{1} << 14;

}  // namespace

void ScatteredNeighbors::add(std::vector<std::uint32_t> queries, Neighbors found) {
    pieces_.push_back({std::move(queries), std::move(found)});
}

Status ScatteredNeighbors::put_together(std::size_t queries, Execution& execution,
                                         Neighbors& answer) {
    struct Step {
        const Piece* piece;
        std::size_t begin, end;
    };
    std::vector<Step> steps;
    answer = {};
    for (const Piece& piece : pieces_) {
        answer.rescored += piece.found.rescored;
        answer.escalated += piece.found.escalated;
        for (std::size_t begin = 0; begin < piece.queries.size(); begin += kQueriesOfJoin)
            steps.push_back(
                {&piece, begin, std::min(piece.queries.size(), begin + kQueriesOfJoin)});
    }
    execution.begin_phase("joining neighbors", 2 * steps.size());
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
        const Neighbors& found = piece->found;
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
