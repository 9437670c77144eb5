#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <span>
#include <utility>

#include "cpp/base/stoppable.hpp"
#include "cpp/terms/detail/filter.hpp"
#include "cpp/terms/detail/inverted_index.hpp"
#include "cpp/terms/detail/searches.hpp"

namespace gputext {
namespace {

/// Queries that read a tile one after the other.
constexpr std::size_t kMostGrouped = 64;
/// Bytes that the items of a group's queries may take, as long as they are not rescored.
constexpr std::size_t kKeptBytes = std::size_t{1} << 26;

/// Whether some weight is below 0.
Result<bool> any_negative(const Vectors& vectors, std::span<const double> factors,
                          Execution& execution) {
    for (const double factor : factors)
        if (factor < 0) return true;
    const std::uint64_t begin = vectors.row_begins.front(), end = vectors.row_begins.back();
    const auto* elements = static_cast<const std::uint32_t*>(vectors.elements);
    const std::size_t tasks = (end - begin + kLookEvery - 1) / kLookEvery;
    std::atomic<bool> negative{false};
    GPUTEXT_TRY(execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        const std::uint64_t from = begin + task * kLookEvery, to = std::min(end, from + kLookEvery);
        std::uint32_t bits = 0;  // the sign is the highest of either type
        for (std::uint64_t i = from; i < to; ++i) bits |= elements[i];
        if (bits >> 31 != 0) negative = true;
        return Status();
    }));
    return negative.load();
}

/// Some of the classes, and their index.
struct Part {
    std::size_t begin, end;  // classes
    InvertedIndex index;
};

/// Where a query stands on its way through the tiles.
struct QueryState {
    IndexedQuery query;
    std::vector<ScoredItem> kept;
    std::size_t capacity = 0;
    float least = 0;  // no neighbor scores less
};

/// What a thread needs for its tasks.
struct Scratch {
    Scratch(TermFilter of_index, Metric metric) : filter(std::move(of_index)), terms(metric) {}

    TermFilter filter;
    std::vector<QueryState> states;
    QueryTerms terms;
    std::vector<Candidate> candidates;
};

class PartSearch {
public:
    PartSearch(TermKnnProblem& search, const DistinctRows& distinct, const Part& part,
               std::span<const double> query_squares, bool negative)
        : search_(search),
          distinct_(distinct),
          part_(part),
          squares_(query_squares),
          negative_(negative),
          k_(search.nearest.k()),
          scratch_(search.execution.threads()) {}

    Status run() {
        const std::size_t queries = squares_.size(), tiles = part_.index.tiles();
        // Tiles are shared out only where the queries alone are too few for all threads.
        const std::size_t wanted = 4 * std::size_t{search_.execution.threads()};
        const std::size_t each = sizeof(ScoredItem) * std::min(2 * k_ + 1024, part_.index.size());
        const std::size_t grouped =
            std::clamp<std::size_t>(std::min(queries / wanted, kKeptBytes / each), 1, kMostGrouped);
        const std::size_t groups = (queries + grouped - 1) / grouped;
        const std::size_t spans = std::clamp<std::size_t>((wanted + groups - 1) / groups, 1, tiles);
        search_.execution.begin_phase("finding neighbors", groups * spans);
        return search_.execution.parallel_for(
            groups * spans, [&](std::size_t task, unsigned worker) {
                if (!scratch_[worker])
                    scratch_[worker] = std::make_unique<Scratch>(
                        TermFilter(part_.index, negative_, search_.parameters.simd),
                        search_.parameters.metric);
                const std::size_t group = task / spans, span = task % spans;
                return run_group(*scratch_[worker], group * grouped,
                                 std::min(queries, (group + 1) * grouped), tiles * span / spans,
                                 tiles * (span + 1) / spans);
            });
    }

private:
    Status run_group(Scratch& scratch, std::size_t begin, std::size_t end, std::size_t first_tile,
                     std::size_t end_tile) {
        const Stop stop = search_.execution.stop();
        scratch.states.resize(std::max(scratch.states.size(), end - begin));
        for (std::size_t query = begin; query < end; ++query)
            start(scratch.states[query - begin], query, first_tile);
        for (std::size_t tile = first_tile; tile < end_tile; ++tile)
            for (std::size_t query = begin; query < end; ++query) {
                if (stop()) return Status::cancelled();
                add_tile(scratch.filter, scratch.states[query - begin], query, tile);
            }
        for (std::size_t query = begin; query < end; ++query)
            GPUTEXT_TRY(rescore(scratch, scratch.states[query - begin], query));
        return {};
    }

    void start(QueryState& state, std::size_t query, std::size_t first_tile) const {
        state.query.set(search_.query_weights, query, squares_[query], part_.index, first_tile,
                        negative_);
        state.kept.clear();
        state.capacity = std::max(2 * std::min(k_, part_.index.size()), k_ + 512);
        state.least = state.query.bound().least_within(search_.nearest.limit(query));
    }

    void add_tile(TermFilter& filter, QueryState& state, std::size_t query,
                  std::size_t tile) const {
        if (state.query.empty()) return;
        filter.score(state.query, tile);
        filter.gate(tile, state.least, [&](ScoredItem item) {
            if (first_item(query, item.position) == kNoItem) return state.least;
            state.kept.push_back(item);
            if (state.kept.size() >= state.capacity) prune(state);
            return state.least;
        });
    }

    /// Leaves those that the k-th best score does not exclude.
    void prune(QueryState& state) const {
        auto& kept = state.kept;
        const auto kth = kept.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
        std::nth_element(kept.begin(), kth, kept.end(),
                         [](const auto& a, const auto& b) { return a.score > b.score; });
        state.least = std::max(state.least, state.query.bound().least_beside(kth->score));
        std::erase_if(kept, [&](const ScoredItem& item) { return item.score < state.least; });
        state.capacity = std::max(state.capacity, 2 * kept.size());
    }

    Status rescore(Scratch& scratch, QueryState& state, std::size_t query) {
        const Stop stop = search_.execution.stop();
        if (state.kept.size() > k_) prune(state);
        if (state.kept.empty()) return {};
        scratch.terms.set(search_.query_weights, query);
        const double limit = search_.nearest.limit(query);
        std::size_t since_look = 0;
        for (const auto& [score, position] : state.kept) {
            const std::uint32_t item = first_item(query, position);
            const double distance =
                scratch.terms.distance(search_.item_weights, item, part_.index.square(position));
            const auto of = static_cast<std::uint32_t>(part_.begin + position);
            if (distance <= limit) scratch.candidates.push_back({distance, item, of});
            since_look += search_.item_weights.stored(item) + 1;
            if (since_look < kLookEvery / 8) continue;
            since_look = 0;
            if (stop()) return Status::cancelled();
        }
        search_.rescored += state.kept.size();
        return search_.nearest.add(query, scratch.candidates, stop);
    }

    static constexpr std::uint32_t kNoItem = UINT32_MAX;
    /// The first item of a class that the query may have as a neighbor.
    std::uint32_t first_item(std::size_t query, std::uint32_t position) const {
        for (const std::uint32_t item : distinct_.members(part_.begin + position))
            if (search_.keys.differ(query, item)) return item;
        return kNoItem;
    }

    TermKnnProblem& search_;
    const DistinctRows& distinct_;
    const Part& part_;
    std::span<const double> squares_;
    bool negative_;
    std::size_t k_;
    std::vector<std::unique_ptr<Scratch>> scratch_;
};

/// As many classes from `begin` on as half of the memory holds, at least one: the other half is for
/// dense terms.
std::size_t end_of_part(const TermKnnProblem& search, const DistinctRows& distinct,
                        std::size_t begin) {
    std::size_t stored = 0, end = begin;
    do {
        stored += search.items.stored(distinct.firsts()[end++]);
    } while (end < distinct.size() &&
             InvertedIndex::bytes_for(end + 1 - begin,
                                      stored + search.items.stored(distinct.firsts()[end])) <=
                 search.parameters.memory_limit / 2);
    return end;
}

}  // namespace

Status search_texts_indexed(TermKnnProblem& search, const DistinctRows& distinct) {
    Execution& execution = search.execution;
    const Vectors& queries = search.queries;
    auto negative = any_negative(queries, search.query_weights.factors(), execution);
    if (negative.ok() && !*negative)
        negative = any_negative(search.items, search.item_weights.factors(), execution);
    if (!negative.ok()) return negative.status();
    std::vector<double> squares(queries.rows);
    execution.begin_phase("weighing queries", queries.rows);
    GPUTEXT_TRY(execution.parallel_for(queries.rows, [&](std::size_t query, unsigned) {
        squares[query] = search.query_weights.square(query);
        return Status();
    }));
    for (std::size_t begin = 0; begin < distinct.size();) {
        Part part{begin, end_of_part(search, distinct, begin),
                  InvertedIndex(search.parameters.metric)};
        begin = part.end;
        GPUTEXT_TRY(part.index.build(search.items, search.item_weights,
                                     distinct.firsts().subspan(part.begin, part.end - part.begin),
                                     *negative, search.parameters.memory_limit / 2, execution));
        GPUTEXT_TRY(PartSearch(search, distinct, part, squares, *negative).run());
    }
    return {};
}

}  // namespace gputext
