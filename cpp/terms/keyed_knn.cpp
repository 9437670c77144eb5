#include "cpp/terms/keyed_knn.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "cpp/knn/group_search.hpp"
#include "cpp/terms/detail/matrix.hpp"

namespace gputext {
namespace {

/// Rows whose squares are computed between two looks for a stop request.
constexpr std::size_t kRowsAtOnce = 1024;
constexpr std::size_t kLine = 64;
/// Bytes of a row's columns that are fetched before they are needed.
constexpr std::size_t kFetched = 512;

void fetch_row(const Vectors& rows, std::uint32_t row) {
    const auto* const columns = reinterpret_cast<const std::byte*>(rows.columns.data());
    const std::size_t begin = rows.begin(row) * sizeof(std::uint32_t);
    const std::size_t size = std::min(kFetched, rows.stored(row) * sizeof(std::uint32_t));
    for (std::size_t at = 0; at < size; at += kLine) {
        __builtin_prefetch(columns + begin + at, 0, 2);
        __builtin_prefetch(rows.row_bytes(row) + at, 0, 2);
    }
}

class TermDistances final : public RowDistances {
public:
    TermDistances(Metric metric, const Vectors& queries, const Vectors& items,
                  std::span<const double> factors, std::span<const double> item_squares)
        : queries_(queries),
          items_(items),
          query_weights_(queries, factors),
          item_weights_(items, factors),
          item_squares_(item_squares),
          terms_(metric) {}

    void expect_query(std::uint32_t query) const override { fetch_row(queries_, query); }
    void expect_item(std::uint32_t item) const override { fetch_row(items_, item); }
    void set_query(std::uint32_t query) override { terms_.set(query_weights_, query); }
    void to_items(std::span<const std::uint32_t> items, double, double* distances) const override {
        for (std::size_t i = 0; i < items.size(); ++i)
            distances[i] = terms_.distance(item_weights_, items[i], item_squares_[items[i]]);
    }

private:
    const Vectors& queries_;
    const Vectors& items_;
    TermMatrix query_weights_, item_weights_;
    std::span<const double> item_squares_;
    QueryTerms terms_;
};

Result<Neighbors> search_keys(const TermKnnParameters& parameters, std::span<const double> factors,
                              const Vectors& queries, const Vectors& items, const MatchKeys& match,
                              const RowKeys& excluded, Execution& execution) {
    const auto groups = group_by_key(match, execution);
    if (!groups.ok()) return groups.status();
    std::vector<double> squares(items.rows);
    const TermMatrix weights(items, factors);
    const std::size_t tasks = (items.rows + kRowsAtOnce - 1) / kRowsAtOnce;
    execution.begin_phase("weighing texts", tasks);
    const Status weighed = execution.parallel_for(tasks, [&](std::size_t task, unsigned) {
        const std::size_t end = std::min(items.rows, (task + 1) * kRowsAtOnce);
        for (std::size_t row = task * kRowsAtOnce; row < end; ++row)
            squares[row] = weights.square(row);
        return Status();
    });
    if (!weighed.ok()) return weighed;

    KnnParameters of_groups;
    of_groups.k = parameters.k;
    of_groups.radius = parameters.radius;
    of_groups.memory_limit = parameters.memory_limit;
    of_groups.answer_limit = parameters.answer_limit;
    const auto search_matrices = [&](const KnnParameters& given, const Vectors& some_queries,
                                     const Vectors& some_items, const RowKeys& keys,
                                     Execution& of_search) {
        TermKnnParameters own = parameters;
        own.memory_limit = given.memory_limit;
        own.answer_limit = given.answer_limit;
        return term_knn(own, factors, some_queries, some_items, keys, of_search);
    };
    const GroupSearch search{of_groups,
                             queries,
                             items,
                             excluded,
                             [&] {
                                 return std::make_unique<TermDistances>(parameters.metric, queries,
                                                                        items, factors, squares);
                             },
                             search_matrices};
    return search_groups(search, *groups, execution);
}

}  // namespace

Result<Neighbors> keyed_term_knn(const TermKnnParameters& parameters,
                                 std::span<const double> factors, const Vectors& queries,
                                 const Vectors& items, const MatchKeys& match,
                                 const RowKeys& excluded, Execution& execution) {
    GPUTEXT_TRY(check_match_keys(match, queries.rows, items.rows));
    if (match.none()) return term_knn(parameters, factors, queries, items, excluded, execution);
    GPUTEXT_TRY(check_term_search(parameters, factors, queries, items, excluded));
    if (const auto largest = largest_magnitude(queries, "query", execution); !largest.ok())
        return largest.status();
    if (const auto largest = largest_magnitude(items, "item", execution); !largest.ok())
        return largest.status();
    if (queries.rows > 0 && items.rows > 0)
        return search_keys(parameters, factors, queries, items, match, excluded, execution);
    Neighbors answer;
    answer.begins.assign(queries.rows + 1, 0);
    return answer;
}

}  // namespace gputext
