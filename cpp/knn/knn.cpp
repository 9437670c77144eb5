#include "cpp/knn/knn.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "cpp/base/stoppable.hpp"
#include "cpp/knn/detail/filter_space.hpp"
#include "cpp/knn/detail/searches.hpp"
#include "cpp/knn/distinct_rows.hpp"
#include "cpp/knn/nearest_lists.hpp"

namespace gputext {
namespace {

/// A query among some of the classes.
class PlainTask {
public:
    PlainTask(KnnProblem& search, std::uint32_t query, Distances& distances)
        : search_(search), query_(query), distances_(distances) {
        distances_.set_query(query);
    }

    Status run(std::size_t begin, std::size_t end) {
        const Stop stop = search_.execution.stop();
        const std::size_t k = search_.nearest.k();
        const std::size_t look_every =
            std::max<std::size_t>(1, (kLookEvery / 4) / (search_.items.dimensions + 16));
        double limit = search_.nearest.limit(query_);
        std::size_t most = 2 * k + 1024;  // candidates
        for (std::size_t i = begin; i < end; ++i) {
            if (i % look_every == 0 && stop()) return Status::cancelled();
            search_.rescore(query_, static_cast<std::uint32_t>(i), limit, distances_, candidates_);
            if (candidates_.size() < most) continue;
            limit = keep_nearest(k, limit);
            // All of them may be as far as the k-th.
            most = std::max(most, 2 * candidates_.size());
        }
        search_.rescored += end - begin;
        return search_.nearest.add(query_, candidates_, stop);
    }

private:
    /// Leaves the k nearest and those as far as the k-th; returns its distance.
    double keep_nearest(std::size_t k, double limit) {
        const auto kth = candidates_.begin() + static_cast<std::ptrdiff_t>(k - 1);
        std::nth_element(candidates_.begin(), kth, candidates_.end());
        limit = std::min(limit, kth->distance);
        std::erase_if(candidates_, [limit](const Candidate& c) { return c.distance > limit; });
        return limit;
    }

    KnnProblem& search_;
    std::uint32_t query_;
    Distances& distances_;
    std::vector<Candidate> candidates_;
};

/// Computes every distance. Adds to search.nearest. Error: cancelled.
Status search_plainly(KnnProblem& search) {
    const std::size_t classes = search.distinct.size(), queries = search.queries.rows;
    if (classes == 0 || queries == 0) return {};
    // The items are divided only if there are fewer queries than threads need, into parts of at
    // least about a millisecond.
    const std::size_t threads = search.execution.threads();
    const std::size_t least = std::max<std::size_t>(1, kLookEvery / (search.items.dimensions + 16));
    const std::size_t parts = std::clamp<std::size_t>(
        std::min((4 * threads + queries - 1) / queries, classes / least), 1, classes);
    std::vector<Distances> distances(threads, search.distances());
    search.execution.begin_phase("computing distances", queries * parts);
    return search.execution.parallel_for(queries * parts, [&](std::size_t task, unsigned worker) {
        const std::size_t part = task % parts;
        return PlainTask(search, static_cast<std::uint32_t>(task / parts), distances[worker])
            .run(classes * part / parts, classes * (part + 1) / parts);
    });
}

// ---- The choice of a search ----

/// Fewer queries than these would be ready before the items were packed, or equal ones found.
constexpr std::size_t kFewQueries = 4;

/// The items' classes; for few queries each item has its own, unless a sample shows many copies.
Status find_classes(const Vectors& queries, const Vectors& items, Execution& execution,
                    DistinctRows& distinct) {
    if (queries.rows < kFewQueries) {
        const auto mean = mean_class_size(items, execution);
        if (!mean.ok()) return mean.status();
        if (*mean == 1) {
            distinct.set_apart(items.rows);
            return {};
        }
    }
    return distinct.set(items, execution);
}

Status run(const KnnParameters& parameters, const Vectors& given_queries,
           const Vectors& given_items, const RowKeys& keys, std::span<const double> radii,
           Execution& execution, Neighbors& answer) {
    answer.begins.assign(given_queries.rows + 1, 0);
    const auto largest_query = largest_magnitude(given_queries, "query", execution);
    if (!largest_query.ok()) return largest_query.status();
    const auto largest_item = largest_magnitude(given_items, "item", execution);
    if (!largest_item.ok()) return largest_item.status();
    if (given_queries.rows == 0 || given_items.rows == 0) return {};
    FewerColumns fewer;
    GPUTEXT_TRY(fewer.set(given_queries, given_items, execution.stop()));
    const Vectors &queries = fewer.queries(), &items = fewer.items();

    DistinctRows distinct;
    GPUTEXT_TRY(find_classes(queries, items, execution, distinct));
    const std::size_t k = std::min(parameters.k, distinct.size());
    MemoryBudget budget(parameters.answer_limit);
    NearestLists nearest(queries.rows, k, parameters.radius, parameters.include_ties, budget);
    for (std::size_t query = 0; query < radii.size(); ++query)
        nearest.set_limit(query, radii[query]);
    KnnProblem search{parameters, queries, items, keys, distinct, nearest, execution};
    if (items.sparse() || queries.rows < kFewQueries ||
        !FilterSpace::holds(*largest_query, *largest_item, items.dimensions)) {
        GPUTEXT_TRY(search_plainly(search));
    } else {
        const FilterSpace space(parameters.metric, items, *largest_query, *largest_item,
                                parameters.simd);
        const auto escalated = search_filtered(search, space);
        if (!escalated.ok()) return escalated.status();
        answer.escalated = *escalated;
    }
    answer.rescored = search.rescored;
    const auto take = [&](std::size_t query, std::vector<Candidate>& classes) {
        return nearest.take(query, classes, execution.stop());
    };
    return expand_classes(parameters, queries.rows, keys, &distinct, take, budget, execution,
                          answer);
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
    GPUTEXT_TRY(check_options(parameters, queries, items, keys));
    return queries.rows > 0 && items.rows > 0 ? check_comparable(queries, items) : Status();
}

Result<Neighbors> knn(const KnnParameters& parameters, const Vectors& queries,
                       const Vectors& items, const RowKeys& keys, Execution& execution) {
    GPUTEXT_TRY(check_search(parameters, queries, items, keys));
    Neighbors answer;
    GPUTEXT_TRY(run(parameters, queries, items, keys, {}, execution, answer));
    return answer;
}

Result<Neighbors> knn_nearer(const KnnParameters& parameters, std::span<const double> radii,
                             const Vectors& queries, const Vectors& items, Execution& execution) {
    GPUTEXT_TRY(check_search(parameters, queries, items, {}));
    Neighbors answer;
    GPUTEXT_TRY(run(parameters, queries, items, {}, radii, execution, answer));
    return answer;
}

}  // namespace gputext
