#include "cpp/knn/keyed_knn.hpp"

#include <algorithm>
#include <memory>

#include "cpp/knn/distance.hpp"
#include "cpp/knn/group_search.hpp"
#include "cpp/knn/knn.hpp"

namespace gputext {
namespace {

/// Bytes of a row that are fetched before they are needed; the processor itself fetches what
/// follows.
constexpr std::size_t kFetched = 1024;
constexpr std::size_t kLine = 64;

void fetch_row(const Vectors& vectors, std::uint32_t row) {
    const std::byte* const bytes = vectors.row_bytes(row);
    const std::size_t size = std::min(kFetched, vectors.stored(row) * element_size(vectors.type));
    for (std::size_t at = 0; at < size; at += kLine) __builtin_prefetch(bytes + at, 0, 2);
}

class VectorDistances final : public RowDistances {
public:
    VectorDistances(const KnnParameters& parameters, const Vectors& queries, const Vectors& items)
        : queries_(queries),
          items_(items),
          distances_(parameters.metric, queries, items, parameters.simd) {}

    void expect_query(std::uint32_t query) const override { fetch_row(queries_, query); }
    void expect_item(std::uint32_t item) const override { fetch_row(items_, item); }
    void set_query(std::uint32_t query) override { distances_.set_query(query); }
    void to_items(std::span<const std::uint32_t> items, double limit,
                  double* distances) const override {
        for (std::size_t i = 0; i < items.size(); ++i)
            distances[i] = distances_.unless_beyond(limit, items[i]);
    }

private:
    const Vectors& queries_;
    const Vectors& items_;
    Distances distances_;
};

Result<Neighbors> search_keys(const KnnParameters& parameters, const Vectors& queries,
                               const Vectors& items, const MatchKeys& match,
                               const RowKeys& excluded, Execution& execution) {
    FewerColumns fewer;
    if (Status status = fewer.set(queries, items, execution.stop()); !status.ok()) return status;
    const auto groups = group_by_key(match, execution);
    if (!groups.ok()) return groups.status();
    const GroupSearch search{parameters,
                             fewer.queries(),
                             fewer.items(),
                             excluded,
                             [&] {
                                 return std::make_unique<VectorDistances>(
                                     parameters, fewer.queries(), fewer.items());
                             },
                             knn};
    return search_groups(search, *groups, execution);
}

}  // namespace

Result<Neighbors> keyed_knn(const KnnParameters& parameters, const Vectors& queries,
                             const Vectors& items, const MatchKeys& match, const RowKeys& excluded,
                             Execution& execution) {
    GPUTEXT_TRY(check_match_keys(match, queries.rows, items.rows));
    if (match.none()) return knn(parameters, queries, items, excluded, execution);
    GPUTEXT_TRY(check_search(parameters, queries, items, excluded));
    if (const auto largest = largest_magnitude(queries, "query", execution); !largest.ok())
        return largest.status();
    if (const auto largest = largest_magnitude(items, "item", execution); !largest.ok())
        return largest.status();
    if (queries.rows > 0 && items.rows > 0)
        return search_keys(parameters, queries, items, match, excluded, execution);
    Neighbors answer;
    answer.begins.assign(queries.rows + 1, 0);
    return answer;
}

}  // namespace gputext
