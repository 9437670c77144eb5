#include "cpp/terms/knn.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "cpp/base/stoppable.hpp"
#include "cpp/knn/distinct_rows.hpp"
#include "cpp/knn/nearest_lists.hpp"
#include "cpp/terms/detail/searches.hpp"

namespace gputext {
namespace {

/// Computes every distance, reading the items once: for so few queries that an index would not pay.
/// Adds items, each of its own class, to search.nearest. O(stored elements of the items * queries).
/// Error: cancelled.
Status search_texts_plainly(TermKnnProblem& search) {
    const std::size_t queries = search.query_weights.rows(), items = search.items.rows;
    std::vector<QueryTerms> terms(queries, QueryTerms(search.parameters.metric));
    for (std::size_t query = 0; query < queries; ++query)
        terms[query].set(search.query_weights, query);
    // A task takes about a millisecond, unless a single row takes longer.
    const std::size_t step =
        std::max<std::size_t>(1, (kLookEvery / 4) / (search.items.average_stored() + 8));
    const std::size_t tasks = (items + step - 1) / step;
    const Stop stop = search.execution.stop();
    search.execution.begin_phase("computing distances", tasks);
    return search.execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        const std::size_t begin = task * step, end = std::min(items, begin + step);
        std::vector<std::vector<Candidate>> candidates(queries);
        std::vector<double> limits(queries);
        std::vector<ColumnSum> products(queries);
        std::vector<char> shared(queries);
        std::size_t computed = 0;
        for (std::size_t query = 0; query < queries; ++query)
            limits[query] = search.nearest.limit(query);
        for (std::size_t item = begin; item < end; ++item) {
            ColumnSum square;
            std::fill(products.begin(), products.end(), ColumnSum());
            std::fill(shared.begin(), shared.end(), 0);
            search.item_weights.each(item, [&](std::uint32_t term, double weight) {
                square.add(term, weight * weight);
                for (std::size_t query = 0; query < queries; ++query) {
                    const double query_weight = terms[query].weight(term);
                    if (query_weight == 0) continue;
                    products[query].add(term, query_weight * weight);
                    shared[query] = 1;
                }
            });
            for (std::size_t query = 0; query < queries; ++query) {
                if (!shared[query] || !search.keys.differ(query, item)) continue;
                const double distance = terms[query].distance(products[query], square());
                const auto number = static_cast<std::uint32_t>(item);
                ++computed;
                if (distance <= limits[query])
                    candidates[query].push_back({distance, number, number});
            }
        }
        search.rescored += computed;
        for (std::size_t query = 0; query < queries; ++query)
            GPUTEXT_TRY(search.nearest.add(query, candidates[query], stop));
        return Status();
    });
}

// ---- The choice of a search ----

/// Fewer queries than these are ready before the items would be indexed.
constexpr std::size_t kFewQueries = 8;

Status search(const TermKnnParameters& parameters, std::span<const double> factors,
              const Vectors& queries, const Vectors& items, const RowKeys& keys,
              Execution& execution, Neighbors& answer) {
    const TermMatrix query_weights(queries, factors), item_weights(items, factors);
    DistinctRows distinct;
    const bool plain = queries.rows < kFewQueries;
    if (!plain) GPUTEXT_TRY(distinct.set(items, execution));
    const std::size_t k = std::min(parameters.k, plain ? items.rows : distinct.size());
    MemoryBudget budget(parameters.answer_limit);
    NearestLists nearest(queries.rows, k, parameters.radius, false, budget);
    TermKnnProblem search{parameters,   queries, items,   query_weights,
                          item_weights, keys,    nearest, execution};
    GPUTEXT_TRY(plain ? search_texts_plainly(search) : search_texts_indexed(search, distinct));
    answer.rescored = search.rescored;
    KnnParameters kept;
    kept.k = parameters.k;
    const auto take = [&](std::size_t query, std::vector<Candidate>& classes) {
        return nearest.take(query, classes, execution.stop());
    };
    return expand_classes(kept, queries.rows, keys, plain ? nullptr : &distinct, take, budget,
                          execution, answer);
}

}  // namespace

Status check_term_search(const TermKnnParameters& parameters, std::span<const double> factors,
                         const Vectors& queries, const Vectors& items, const RowKeys& keys) {
    KnnParameters plain;
    plain.k = parameters.k;
    plain.radius = parameters.radius;
    GPUTEXT_TRY(check_options(plain, queries, items, keys));
    const auto invalid = [](std::string message) {
        return Status(ErrorCode::invalid_argument, std::move(message));
    };
    if (parameters.metric != Metric::cosine && parameters.metric != Metric::inner_product)
        return invalid("the metric of texts must be cosine or inner_product");
    for (const Vectors* rows : {&queries, &items}) {
        if (rows->rows == 0) continue;
        if (!rows->sparse()) return invalid("texts must be sparse vectors");
        if (rows->type != ElementType::float32 && rows->type != ElementType::int32)
            return invalid("the elements of texts must be float or int");
        if (rows->dimensions != factors.size())
            return invalid("there must be a factor for each term");
    }
    return {};
}

Result<Neighbors> term_knn(const TermKnnParameters& parameters, std::span<const double> factors,
                           const Vectors& queries, const Vectors& items, const RowKeys& keys,
                           Execution& execution) {
    GPUTEXT_TRY(check_term_search(parameters, factors, queries, items, keys));
    if (auto largest = largest_magnitude(queries, "query", execution); !largest.ok())
        return largest.status();
    if (auto largest = largest_magnitude(items, "item", execution); !largest.ok())
        return largest.status();
    Neighbors answer;
    answer.begins.assign(queries.rows + 1, 0);
    if (queries.rows == 0 || items.rows == 0) return answer;
    GPUTEXT_TRY(search(parameters, factors, queries, items, keys, execution, answer));
    return answer;
}

}  // namespace gputext
