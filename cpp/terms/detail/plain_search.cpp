#include <algorithm>

#include "cpp/base/stoppable.hpp"
#include "cpp/terms/detail/searches.hpp"

namespace gputext {

Status search_texts_plainly(TermKnnProblem& search) {
    const std::size_t queries = search.query_weights.rows(), items = search.items.rows;
    std::vector<QueryTerms> terms(queries);
    for (std::size_t query = 0; query < queries; ++query)
        terms[query].set(search.query_weights, query);
    // About a millisecond's, as long as no single row takes longer.
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

}  // namespace gputext
