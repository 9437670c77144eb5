#include "cpp/knn/partial_answers.hpp"

#include <algorithm>

namespace gputext {
namespace {

const char kWhat[] = "the merged answers";

/// Queries of a step of parallel work.
constexpr std::size_t kQueriesOfStep = 64;

/// Neighbors that a query has room for once it has its first one.
constexpr std::size_t kLeastRoom = 4;

/// Neighbors at which the farthest are dropped, where at least so many stay.
std::size_t twice(std::size_t kept) {
    return kept > PartialAnswers::kAll / 2 ? PartialAnswers::kAll : 2 * kept;
}

}  // namespace

Status PartialAnswers::add_query(std::uint32_t query) {
    const std::size_t size = std::size_t{query} + 1;
    if (size > queries_.capacity()) {
        const std::size_t capacity = std::max(size, 2 * queries_.capacity());
        GPUTEXT_TRY(budget_.take((capacity - queries_.capacity()) * sizeof(Query), kWhat));
        queries_.reserve(capacity);
    }
    queries_.resize(size);
    return {};
}

/// Leaves only those that may be among the k nearest.
void PartialAnswers::drop_farthest(Query& query) const {
    std::vector<FoundItem>& found = query.found;
    if (found.size() <= k_) return;
    const auto end = found.begin() + static_cast<std::ptrdiff_t>(k_);
    std::nth_element(found.begin(), end - 1, found.end());
    query.limit = (end - 1)->distance;
    const auto kept = ties_ == FoundTies::by_item
                          ? end
                          : std::partition(end, found.end(), [&](const FoundItem& item) {
                                return item.distance <= query.limit;
                            });
    found.erase(kept, found.end());
}

/// Makes room for one more neighbor.
Status PartialAnswers::make_room(Query& query) {
    std::vector<FoundItem>& found = query.found;
    if (query.most == 0) query.most = std::max(kLeastRoom, twice(k_));
    if (found.size() == query.most) {
        drop_farthest(query);
        query.most = twice(std::max({k_, found.size(), kLeastRoom / 2}));
    }
    if (found.size() < found.capacity()) return {};
    const std::size_t capacity =
        std::clamp(2 * found.capacity(), std::min(kLeastRoom, query.most), query.most);
    GPUTEXT_TRY(budget_.take((capacity - found.capacity()) * sizeof(FoundItem), kWhat));
    found.reserve(capacity);
    return {};
}

Status PartialAnswers::add(std::uint32_t number, FoundItem found) {
    if (number >= queries_.size()) GPUTEXT_TRY(add_query(number));
    Query& query = queries_[number];
    if (!(found.distance <= query.limit)) return {};
    if (query.found.size() == query.found.capacity() || query.found.size() == query.most)
        GPUTEXT_TRY(make_room(query));
    query.found.push_back(found);
    return {};
}

Status PartialAnswers::add(std::span<FoundPiece> pieces, Execution& execution) {
    if (pieces.empty()) return {};
    std::stable_sort(pieces.begin(), pieces.end(),
                     [](const FoundPiece& a, const FoundPiece& b) { return a.query < b.query; });
    if (pieces.back().query >= queries_.size()) GPUTEXT_TRY(add_query(pieces.back().query));
    // The pieces of a query are taken in by one thread.
    std::vector<std::size_t> begins;
    for (std::size_t i = 0; i < pieces.size(); ++i)
        if (i == 0 || pieces[i].query != pieces[i - 1].query) begins.push_back(i);
    execution.begin_phase("collecting answers", begins.size());
    begins.push_back(pieces.size());
    return execution.parallel_for(begins.size() - 1, [&](std::size_t i, unsigned) -> Status {
        for (const FoundPiece& piece : pieces.subspan(begins[i], begins[i + 1] - begins[i]))
            for (const FoundItem& found : piece.found) GPUTEXT_TRY(add(piece.query, found));
        return {};
    });
}

template <class Body>
Status PartialAnswers::for_each_query(const char* phase, Execution& execution, const Body& body) {
    const std::size_t steps = (queries_.size() + kQueriesOfStep - 1) / kQueriesOfStep;
    execution.begin_phase(phase, steps);
    return execution.parallel_for(steps, [&](std::size_t step, unsigned) {
        const std::size_t end = std::min(queries_.size(), (step + 1) * kQueriesOfStep);
        for (std::size_t query = step * kQueriesOfStep; query < end; ++query) body(queries_[query]);
        return Status();
    });
}

Status PartialAnswers::renumber(std::span<const std::uint32_t> ranks, Execution& execution) {
    ties_ = FoundTies::by_item;
    return for_each_query("ordering items", execution, [&](Query& query) {
        for (FoundItem& found : query.found) found.item = ranks[found.item];
    });
}

Status PartialAnswers::finish(Execution& execution) {
    return for_each_query("merging answers", execution, [&](Query& query) {
        drop_farthest(query);
        std::sort(query.found.begin(), query.found.end());
    });
}

}  // namespace gputext
