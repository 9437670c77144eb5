#include "kernels/strings/nearest_strings.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/knn/nearest_list.hpp"
#include "kernels/base/bit_product.cuh"
#include "kernels/strings/coded_strings.hpp"
#include "kernels/strings/pair_search.hpp"

namespace gputext::gpu {
namespace {

/// More neighbors need more probes than the filter has blocks for.
constexpr std::size_t kMostNearest = 256;
constexpr std::size_t kRowsOfStep = 256;  // of a thread's step
/// Where more items than one of so many are too long to be compared on a device, the host's own
/// search takes less time than comparing all that its filter leaves.
constexpr std::size_t kPartNotCounted = 16;
static_assert(kBlockRows % kRowsOfStep == 0, "rows come in steps");

/// Distances of pairs, and of each query's the nearest.
class Selection {
public:
    Selection(const NearestStringsParameters& parameters, const Strings& queries,
              const Strings& items, const CodedStrings& rows, const CodedStrings& columns,
              Execution& execution, MemoryBudget& budget, ScatteredNeighbors& answers)
        : parameters_(parameters),
          queries_(queries),
          items_(items),
          rows_(rows),
          columns_(columns),
          execution_(execution),
          budget_(budget),
          answers_(answers),
          distances_(execution.threads()) {}

    /// Of some rows; with `limits`, which are lowered, there are more of these to come.
    Status add(const PlaceRange& rows, const std::vector<StringPair>& pairs, RowLimits* limits) {
        GPUTEXT_TRY(group(rows, pairs));
        const std::size_t count = rows.end - rows.begin;
        nearest_.resize(count);
        if (limits != nullptr) return lower(rows, pairs, *limits);
        return execution_.parallel_for(
            (count + kRowsOfStep - 1) / kRowsOfStep, [&](std::size_t step, unsigned worker) {
                const std::size_t begin = step * kRowsOfStep;
                return select(rows, begin, std::min(count, begin + kRowsOfStep), pairs, worker);
            });
    }

private:
    /// Lists the pairs of each row.
    Status group(const PlaceRange& rows, const std::vector<StringPair>& pairs) {
        begins_.assign(rows.end - rows.begin + 2, 0);
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            if (i % kLookEvery == 0 && execution_.stop_requested()) return Status::cancelled();
            ++begins_[pairs[i].row - rows.begin + 2];
        }
        std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
        of_rows_.resize(pairs.size());
        for (std::size_t i = 0; i < pairs.size(); ++i) {
            if (i % kLookEvery == 0 && execution_.stop_requested()) return Status::cancelled();
            of_rows_[begins_[pairs[i].row - rows.begin + 1]++] = i;
        }
        return {};
    }

    /// Adds a row's pairs to its nearest so far, and leaves k of them.
    Status add_row(const PlaceRange& rows, std::size_t row, const std::vector<StringPair>& pairs,
                   unsigned worker) {
        const Stop stop = execution_.stop();
        const std::uint32_t query = rows_.numbers[rows.begin + row];
        std::vector<FoundItem>& found = nearest_[row];
        const std::size_t before = found.size();
        bool query_is_set = false;
        for (std::size_t i = begins_[row]; i < begins_[row + 1]; ++i) {
            if (i % kLookEvery == 0 && stop()) return Status::cancelled();
            const StringPair& pair = pairs[of_rows_[i]];
            const std::uint32_t item = columns_.numbers[pair.column];
            double distance = 0;
            if (pair.counts == kNotCounted) {
                auto& own = distances_[worker];
                if (!own) own.emplace(parameters_.metric);
                if (!std::exchange(query_is_set, true)) own->set_query(queries_[query]);
                GPUTEXT_TRY((*own)(items_[item], parameters_.radius, stop, distance));
            } else {
                distance = distance_of_counts(parameters_.metric, queries_.length(query),
                                              items_.length(item), pair.counts);
            }
            if (distance <= parameters_.radius && !std::isinf(distance))
                found.push_back({distance, item});
        }
        if (found.size() > parameters_.k) {
            std::nth_element(found.begin(),
                             found.begin() + static_cast<std::ptrdiff_t>(parameters_.k),
                             found.end());
            found.resize(parameters_.k);
        }
        return budget_.take((found.size() - before) * kBytesOfNeighbor);
    }

    /// Adds pairs, and limits what is looked for by the k-th nearest.
    Status lower(const PlaceRange& rows, const std::vector<StringPair>& pairs, RowLimits& limits) {
        const std::size_t count = rows.end - rows.begin;
        const std::size_t steps = (count + kRowsOfStep - 1) / kRowsOfStep;
        Execution own(execution_.threads(), execution_);  // whose steps are not the phase's
        return own.parallel_for(steps, [&](std::size_t step, unsigned worker) -> Status {
            const std::size_t end = std::min(count, (step + 1) * kRowsOfStep);
            for (std::size_t row = step * kRowsOfStep; row < end; ++row) {
                if (rows_.numbers[rows.begin + row] == kNoString) continue;
                GPUTEXT_TRY(add_row(rows, row, pairs, worker));
                if (nearest_[row].size() < parameters_.k) continue;
                const FoundItem last =
                    *std::max_element(nearest_[row].begin(), nearest_[row].end());
                if (!(last < FoundItem{limits.distances[row], limits.numbers[row]})) continue;
                limits.distances[row] = last.distance;
                limits.numbers[row] = last.item;
            }
            return {};
        });
    }

    Status select(const PlaceRange& rows, std::size_t begin, std::size_t end,
                  const std::vector<StringPair>& pairs, unsigned worker) {
        std::vector<std::uint32_t> of_queries;
        Neighbors neighbors;
        neighbors.begins.push_back(0);
        for (std::size_t row = begin; row < end; ++row) {
            const std::uint32_t query = rows_.numbers[rows.begin + row];
            if (query == kNoString) continue;
            GPUTEXT_TRY(add_row(rows, row, pairs, worker));
            std::vector<FoundItem>& found = nearest_[row];
            if (!stoppable_sort(found.begin(), found.end(), std::less<>(), execution_.stop()))
                return Status::cancelled();
            of_queries.push_back(query);
            for (const FoundItem& neighbor : found) {
                neighbors.items.push_back(neighbor.item);
                neighbors.distances.push_back(neighbor.distance);
            }
            neighbors.begins.push_back(neighbors.items.size());
            found.clear();
        }
        const std::lock_guard lock(mutex_);
        answers_.add(std::move(of_queries), std::move(neighbors));
        return {};
    }

    const NearestStringsParameters& parameters_;
    const Strings &queries_, &items_;
    const CodedStrings &rows_, &columns_;
    Execution& execution_;
    MemoryBudget& budget_;
    ScatteredNeighbors& answers_;
    std::mutex mutex_;
    std::vector<std::uint64_t> begins_;   // of a row's pairs, and the end
    std::vector<std::uint64_t> of_rows_;  // pairs, by their rows
    std::vector<std::vector<FoundItem>> nearest_;
    std::vector<std::optional<StringDistance>> distances_;
};

/// Strings that lie one after the other, and the numbers that they have elsewhere.
struct SomeStrings {
    std::vector<std::uint32_t> numbers;
    std::vector<std::uint64_t> begins{0};
    std::vector<std::uint32_t> symbols;
    std::vector<std::uint32_t> keys;

    void add(std::uint32_t number, Symbols string) {
        numbers.push_back(number);
        symbols.insert(symbols.end(), string.begin(), string.end());
        begins.push_back(symbols.size());
    }
};

/// Searches for queries that the kernels do not take, on the host.
Status search_on_host(const NearestStringsParameters& parameters,
                      std::span<const std::uint32_t> chosen, const Strings& queries,
                      const Strings& items, const RowKeys& excluded, Execution& execution,
                      MemoryBudget& budget, ScatteredNeighbors& answers) {
    if (chosen.empty()) return {};
    SomeStrings some;
    for (const std::uint32_t query : chosen) {
        if (execution.stop_requested()) return Status::cancelled();
        some.add(query, queries[query]);
        if (!excluded.queries.empty()) some.keys.push_back(excluded.queries[query]);
    }
    auto found = gputext::nearest_strings(parameters, {some.begins, some.symbols.data()}, items, {},
                                          {some.keys, excluded.items}, execution);
    if (!found.ok()) return found.status();
    GPUTEXT_TRY(budget.take(found->items.size() * kBytesOfNeighbor));
    answers.add(std::move(some.numbers), std::move(*found));
    return {};
}

}  // namespace

bool has_kernels_for(const NearestStringsParameters& parameters, const Strings& items) {
    if (parameters.k > kMostNearest && std::isinf(parameters.radius)) return false;
    const bool is_jaro = parameters.metric == StringMetric::jaro ||
                         parameters.metric == StringMetric::jaro_winkler;
    std::size_t not_counted = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (items.length(i) > kLongestString) return false;
        not_counted += is_jaro && items.length(i) > kMostPlaneSymbols;
    }
    return not_counted <= items.size() / kPartNotCounted;
}

Result<Neighbors> nearest_strings(const NearestStringsParameters& parameters,
                                  const Strings& queries, const Strings& items,
                                  const RowKeys& excluded, const DeviceWork& work, UploadRing& ring,
                                  Execution& execution) {
    GPUTEXT_TRY(check_nearest_strings(parameters, queries, items, {}, excluded));
    Neighbors answer;
    answer.begins.assign(queries.size() + 1, 0);
    if (queries.size() == 0 || items.size() == 0) return answer;
    const auto on_host = [&] {
        return gputext::nearest_strings(parameters, queries, items, {}, excluded, execution);
    };
    bool has_product = false;
    GPUTEXT_TRY(has_bit_product(has_product));
    if (!has_product) return on_host();
    const bool coded = parameters.metric != StringMetric::trigram;
    execution.begin_phase("coding strings", 0);
    const StringsAsSource query_source(queries), item_source(items);
    SymbolCodes codes;
    if (coded) {
        const StringSource* const both[] = {&query_source, &item_source};
        GPUTEXT_TRY(codes.set(both, execution));
        if (!codes.fit()) return on_host();
    }
    std::vector<std::uint32_t> short_queries, long_queries, all_items(items.size());
    const std::size_t longest =
        parameters.metric == StringMetric::osa ? kQuickSymbols : kMostPlaneSymbols;
    for (std::uint32_t query = 0; query < queries.size(); ++query)
        (queries.length(query) <= longest ? short_queries : long_queries).push_back(query);
    std::iota(all_items.begin(), all_items.end(), 0u);
    CodedStrings rows, columns;
    const SymbolCodes* const own_codes = coded ? &codes : nullptr;
    GPUTEXT_TRY(rows.set(query_source, short_queries, own_codes, execution));
    GPUTEXT_TRY(columns.set(item_source, all_items, own_codes, execution));

    MemoryBudget budget(parameters.answer_limit);
    ScatteredNeighbors answers;
    if (!short_queries.empty()) {
        PairSearch search(work, ring, execution);
        GPUTEXT_TRY(search.set(parameters.metric, codes.bits(), rows, &columns,
                               {excluded.queries, excluded.items}));
        GPUTEXT_TRY(search.limit(parameters.radius));
        if (parameters.k <= kMostNearest) GPUTEXT_TRY(search.limit_by_nearest(parameters.k));
        Selection selection(parameters, queries, items, rows, columns, execution, budget, answers);
        execution.begin_phase("comparing strings", (rows.places() + kRowsOfStep - 1) / kRowsOfStep);
        const auto take = [&](const PlaceRange& some, const std::vector<StringPair>& pairs,
                              RowLimits* limits) {
            return selection.add(some, pairs, limits);
        };
        GPUTEXT_TRY(search.run(parameters.k <= kMostNearest, take));
    }
    GPUTEXT_TRY(search_on_host(parameters, long_queries, queries, items, excluded, execution,
                               budget, answers));
    GPUTEXT_TRY(answers.put_together(queries.size(), execution, answer));
    return answer;
}

}  // namespace gputext::gpu
