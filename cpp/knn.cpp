#include "cpp/knn.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "cpp/distinct_rows.hpp"
#include "cpp/filter_space.hpp"
#include "cpp/knn_search.hpp"
#include "cpp/nearest_lists.hpp"
#include "cpp/stoppable.hpp"

namespace gputext {
namespace {

/// Fewer queries than these would be ready before the items were packed.
constexpr std::size_t kFewQueries = 4;

/// From classes of equal items to the items themselves.
class Expansion {
public:
    Expansion(const KnnParameters& parameters, const RowKeys& keys, const DistinctRows& distinct)
        : k_(parameters.k), ties_(parameters.include_ties), keys_(keys), distinct_(distinct) {}

    /// Appends the nearest items, in order, given the nearest classes in theirs. False if stopped.
    bool append(std::size_t query, std::span<const Candidate> classes, Stop stop,
                std::vector<std::uint32_t>& items, std::vector<double>& distances) {
        const std::size_t begin = items.size();
        for (std::size_t i = 0; i < classes.size() && items.size() - begin < k_;) {
            // All classes at one distance: their items mix.
            std::size_t end = i;
            group_.clear();
            while (end < classes.size() && classes[end].distance == classes[i].distance)
                if (!append_members(query, classes[end++].item_class, stop)) return false;
            if (end - i > 1) std::sort(group_.begin(), group_.end());
            const std::size_t room = k_ - (items.size() - begin);
            if (!ties_ && group_.size() > room) group_.resize(room);
            items.insert(items.end(), group_.begin(), group_.end());
            distances.resize(items.size(), classes[i].distance);
            i = end;
        }
        return true;
    }

private:
    bool append_members(std::size_t query, std::size_t item_class, Stop stop) {
        std::size_t most = ties_ ? SIZE_MAX : k_;
        const auto members = distinct_.members(item_class);
        for (std::size_t i = 0; i < members.size() && most > 0; ++i) {
            if (i % kLookEvery == kLookEvery - 1 && stop()) return false;
            if (!keys_.differ(query, members[i])) continue;
            group_.push_back(members[i]);
            --most;
        }
        return true;
    }

    std::size_t k_;
    bool ties_;
    const RowKeys& keys_;
    const DistinctRows& distinct_;
    std::vector<std::uint32_t> group_;
};

/// A query's part of the answer, until all are put together.
struct Part {
    std::vector<std::uint32_t> items;
    std::vector<double> distances;
};

Status collect(KnnSearch& search, Neighbours& answer) {
    Execution& execution = search.execution;
    const Stop stop = execution.stop();
    const std::size_t queries = search.queries.rows;
    std::vector<Part> parts(queries);
    execution.begin_phase("ordering neighbours", queries);
    Status status = execution.parallel_for(queries, [&](std::size_t query, unsigned) {
        std::vector<Candidate> nearest;
        Status taken = search.nearest.take(query, nearest, stop);
        if (!taken.ok()) return taken;
        Expansion expansion(search.parameters, search.keys, search.distinct);
        if (!expansion.append(query, nearest, stop, parts[query].items, parts[query].distances))
            return Status::cancelled();
        return Status();
    });
    if (!status.ok()) return status;

    for (std::size_t query = 0; query < queries; ++query)
        answer.begins[query + 1] = answer.begins[query] + parts[query].items.size();
    if (!stoppable_assign(answer.items, answer.begins.back(), {}, stop) ||
        !stoppable_assign(answer.distances, answer.begins.back(), {}, stop))
        return Status::cancelled();
    execution.begin_phase("collecting neighbours", queries);
    return execution.parallel_for(queries, [&](std::size_t query, unsigned) {
        const auto at = static_cast<std::ptrdiff_t>(answer.begins[query]);
        Part part = std::move(parts[query]);
        std::copy(part.items.begin(), part.items.end(), answer.items.begin() + at);
        std::copy(part.distances.begin(), part.distances.end(), answer.distances.begin() + at);
        return Status();
    });
}

Status run(const KnnParameters& parameters, const Vectors& given_queries,
           const Vectors& given_items, const RowKeys& keys, Execution& execution,
           Neighbours& answer) {
    answer.begins.assign(given_queries.rows + 1, 0);
    const auto largest_query = largest_magnitude(given_queries, "query", execution);
    if (!largest_query.ok()) return largest_query.status();
    const auto largest_item = largest_magnitude(given_items, "item", execution);
    if (!largest_item.ok()) return largest_item.status();
    if (given_queries.rows == 0 || given_items.rows == 0) return {};
    FewerColumns fewer;
    if (Status status = fewer.set(given_queries, given_items, execution.stop()); !status.ok())
        return status;
    const Vectors &queries = fewer.queries(), &items = fewer.items();

    DistinctRows distinct;
    if (Status status = distinct.set(items, execution); !status.ok()) return status;
    const std::size_t k = std::min(parameters.k, distinct.size());
    NearestLists nearest(queries.rows, k, parameters.radius, parameters.include_ties);
    KnnSearch search{parameters, queries, items, keys, distinct, nearest, execution};
    if (items.sparse() || queries.rows < kFewQueries ||
        !FilterSpace::holds(*largest_query, *largest_item, items.dimensions)) {
        if (Status status = search_plainly(search); !status.ok()) return status;
    } else {
        const FilterSpace space(parameters.metric, items, *largest_query, *largest_item,
                                parameters.simd);
        const auto escalated = search_filtered(search, space);
        if (!escalated.ok()) return escalated.status();
        answer.escalated = *escalated;
    }
    answer.rescored = search.rescored;
    return collect(search, answer);
}

}  // namespace

Status check_options(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
                     const RowKeys& keys) {
    const auto invalid = [](std::string message) {
        return Status(ErrorCode::invalid_argument, std::move(message));
    };
    if (parameters.k == 0) return invalid("k must be at least 1");
    if (!(parameters.radius > -std::numeric_limits<double>::infinity()))
        return invalid("the radius must be a number");
    if (keys.queries.empty() && keys.items.empty()) return {};
    if (keys.queries.size() != queries.rows || keys.items.size() != items.rows)
        return invalid("there must be a key for each query and each item");
    return {};
}

Status check_search(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
                    const RowKeys& keys) {
    Status status = check_options(parameters, queries, items, keys);
    if (status.ok() && queries.rows > 0 && items.rows > 0)
        status = check_comparable(queries, items);
    return status;
}

Result<Neighbours> nearest_neighbours(const KnnParameters& parameters, const Vectors& queries,
                                      const Vectors& items, const RowKeys& keys,
                                      Execution& execution) {
    if (Status status = check_search(parameters, queries, items, keys); !status.ok()) return status;
    Neighbours answer;
    Status status = run(parameters, queries, items, keys, execution, answer);
    if (!status.ok()) return status;
    return answer;
}

}  // namespace gputext
