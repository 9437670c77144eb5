#include "cpp/knn/distinct_search.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/knn/distinct_rows.hpp"

namespace gputext {
namespace {

// Approximate nanoseconds: a GPU's for a query and an item as near as many others (kTie), or any
// other item (kPair); a host core's to find a row's class, for the row (kRow) and each of its bytes
// (kByte).
constexpr double kTie = 0.5;
constexpr double kPair = 1.0 / 300;
constexpr double kRow = 40;
constexpr double kByte = 0.3;

/// More neighbors than this, and twice as many as wanted, would cost more than copies do.
constexpr std::size_t kFewNeighbors = 128;

/// Queries are merged where about half of them need not be searched.
constexpr double kRepeatedQueries = 2;

double time_saved(const Vectors& queries, const Vectors& items, double mean_class) {
    const double others = static_cast<double>(items.rows) * (1 - 1 / mean_class);
    return static_cast<double>(queries.rows) * ((mean_class - 1) * kTie + others * kPair);
}

/// At least as many as there are items of any one key; that many where keys are numbers below twice
/// the number of items.
std::size_t most_of_one_key(std::span<const std::uint32_t> keys) {
    std::vector<std::uint32_t> counts(std::bit_ceil(2 * keys.size() + 1));
    std::uint32_t most = 0;
    for (const std::uint32_t key : keys) most = std::max(most, ++counts[key & (counts.size() - 1)]);
    return most;
}

/// A matrix' distinct rows, or all of them.
struct MergedRows {
    DistinctRows distinct;
    GatheredRows matrix;

    Status set(const Vectors& vectors, Execution& execution) {
        GPUTEXT_TRY(distinct.set(vectors, execution));
        return matrix.set(vectors, distinct.firsts(), execution);
    }
};

/// Queries that repeat themselves have the same nearest classes.
class MergedQueries {
public:
    Status set(const Vectors& queries, Execution& execution) {
        vectors_ = queries;
        const auto mean_class = mean_class_size(queries, execution);
        if (!mean_class.ok()) return mean_class.status();
        if (*mean_class < kRepeatedQueries) return {};
        GPUTEXT_TRY(rows_.set(queries, execution));
        vectors_ = rows_.matrix.vectors();
        return {};
    }

    const Vectors& vectors() const { return vectors_; }
    /// Where a query of those given is among the vectors.
    std::size_t row_of(std::size_t query) const {
        return rows_.distinct.size() == 0 ? query : rows_.distinct.classes()[query];
    }

private:
    MergedRows rows_;
    Vectors vectors_;
};

}  // namespace

Result<Neighbors> search_distinct_rows(const KnnParameters& parameters, const Vectors& queries,
                                        const Vectors& items, const RowKeys& keys,
                                        const KnnFunction& search, Execution& execution) {
    GPUTEXT_TRY(check_search(parameters, queries, items, keys));
    const auto search_all = [&] { return search(parameters, queries, items, keys); };
    if (items.sparse() || items.rows == 0 || queries.rows == 0) return search_all();
    MergedRows merged;
    GPUTEXT_TRY(merged.set(items, execution));
    const DistinctRows& distinct = merged.distinct;
    KnnParameters for_classes = parameters;
    for_classes.k = distinct.size();
    const std::size_t more = most_of_one_key(keys.items);
    if (parameters.k < for_classes.k && more < for_classes.k - parameters.k)
        for_classes.k = parameters.k + more;
    if (for_classes.k > kFewNeighbors && for_classes.k / 2 > parameters.k) return search_all();
    MergedQueries asked;
    GPUTEXT_TRY(asked.set(queries, execution));

    const auto found = search(for_classes, asked.vectors(), merged.matrix.vectors(), {});
    if (!found.ok()) {
        // The whole search names rows as they were given, and may need less memory with a smaller
        // k.
        const ErrorCode code = found.status().code();
        const bool again = code == ErrorCode::invalid_argument ||
                           code == ErrorCode::out_of_memory || code == ErrorCode::memory_limit;
        return again ? search_all() : found.status();
    }
    const auto classes_of = [&](std::size_t query, std::vector<Candidate>& nearest) {
        const std::size_t row = asked.row_of(query);
        for (auto i = found->begins[row]; i < found->begins[row + 1]; ++i)
            nearest.push_back(
                {found->distances[i], distinct.firsts()[found->items[i]], found->items[i]});
        return Status();
    };
    MemoryBudget budget(parameters.answer_limit);
    Neighbors answer;
    answer.rescored = found->rescored;
    answer.escalated = found->escalated;
    GPUTEXT_TRY(expand_classes(parameters, queries.rows, keys, &distinct, classes_of, budget,
                               execution, answer));
    return answer;
}

bool distinct_rows_pay(const Vectors& queries, const Vectors& items, Execution& execution) {
    if (items.sparse() || items.rows == 0) return false;
    const auto rows = static_cast<double>(items.rows);
    const double bytes = rows * static_cast<double>(items.dimensions * element_size(items.type));
    const double time = rows * kRow + bytes * kByte / execution.threads();
    // With few queries it would not pay even if all items were equal.
    if (time_saved(queries, items, rows) < time) return false;
    const auto mean_class = mean_class_size(items, execution);
    return mean_class.ok() && time_saved(queries, items, *mean_class) >= time;
}

Result<Neighbors> search_distinct_if_it_pays(const KnnParameters& parameters,
                                              const Vectors& queries, const Vectors& items,
                                              const RowKeys& keys, const KnnFunction& search,
                                              Execution& execution) {
    GPUTEXT_TRY(check_search(parameters, queries, items, keys));
    if (!distinct_rows_pay(queries, items, execution))
        return search(parameters, queries, items, keys);
    return search_distinct_rows(parameters, queries, items, keys, search, execution);
}

}  // namespace gputext
