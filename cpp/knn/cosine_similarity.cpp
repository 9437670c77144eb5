#include "cpp/knn/cosine_similarity.hpp"

#include <algorithm>
#include <cmath>

#include "cpp/base/stoppable.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext {

std::optional<double> cosine_similarity(const Vectors& a, const Vectors& b) {
    Distances distances(Metric::cosine, a, b, best_simd());
    distances.set_query(0);
    const double similarity = distances.similarity(0);
    if (std::isnan(similarity)) return std::nullopt;
    return similarity;
}

Result<std::vector<double>> cosine_similarities(const Vectors& query, const Vectors& items,
                                                Simd simd, Execution& execution) {
    if (query.rows != 1)
        return Status(ErrorCode::invalid_argument, "there must be one query vector");
    for (const auto& [vectors, name] : {std::pair{&query, "query"}, std::pair{&items, "item"}}) {
        const auto largest = largest_magnitude(*vectors, name, execution);
        if (!largest.ok()) return largest.status();
    }
    std::vector<double> similarities(items.rows);
    if (items.rows == 0) return similarities;
    GPUTEXT_TRY(check_comparable(query, items));

    FewerColumns fewer;
    GPUTEXT_TRY(fewer.set(query, items, execution.stop()));
    Distances distances(Metric::cosine, fewer.queries(), fewer.items(), simd);
    distances.set_query(0);
    const std::size_t step = std::max<std::size_t>(1, (kLookEvery / 4) / (items.dimensions + 16));
    const std::size_t tasks = (items.rows + step - 1) / step;
    execution.begin_phase("computing similarities", tasks);
    GPUTEXT_TRY(execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        for (std::size_t i = task * step; i < std::min(items.rows, (task + 1) * step); ++i)
            similarities[i] = distances.similarity(i);
        return Status();
    }));
    return similarities;
}

}  // namespace gputext
