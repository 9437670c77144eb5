#include "cpp/bits/nearest_bits.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/bits/detail/bit_tiles.hpp"
#include "cpp/bits/ones_order.hpp"
#include "cpp/knn/nearest_list.hpp"

namespace gputext {
namespace {

/// The most queries that are searched together, and the most bytes of items that they have then.
constexpr std::size_t kMostTogether = 64;
constexpr std::size_t kBlockBytes = std::size_t{1} << 17;
/// Fewer pairs are compared one by one by one thread, and the items of fewer queries are not put in
/// order.
constexpr std::size_t kFewPairs = 4096;
constexpr std::size_t kFewQueries = 8;
constexpr std::size_t kItemsOfStep = 16384;

struct Search {
    const NearestBitsParameters& parameters;
    const Vectors& queries;
    const Vectors& items;
    const RowKeys& excluded;
    Execution& execution;
    MemoryBudget& budget;
    ScatteredNeighbors& answers;
    std::mutex& answers_mutex;

    NearestList new_list() const { return {parameters.k, parameters.radius, budget}; }

    /// Adds an item, unless it is excluded or too far.
    Status add(std::uint32_t query, std::uint32_t item, double distance, NearestList& list) const {
        if (!(distance <= list.limit()) || !excluded.differ(query, item)) return {};
        return list.add({distance, item});
    }

    /// Adds the lists of these queries.
    Status put(std::vector<std::uint32_t> of_queries, std::span<NearestList> lists) const {
        Neighbors found;
        found.begins.push_back(0);
        if (!append_sorted(lists, execution.stop(), found)) return Status::cancelled();
        const std::lock_guard lock(answers_mutex);
        answers.add(std::move(of_queries), std::move(found));
        return {};
    }
};

// ---- Many queries and items ----

struct Query {
    std::uint32_t number;
    std::uint32_t ones;
};

/// What a thread needs.
class TileSearch {
public:
    TileSearch(const Search& search, const OnesOrder& order, const BitTiles& tiles)
        : search_(search),
          order_(order),
          tiles_(tiles),
          block_(std::max<std::size_t>(1, kBlockBytes / (BitTiles::tile_places * 8 *
                                                         std::max<std::size_t>(1, tiles.words()))) *
                 BitTiles::tile_places),
          found_(block_) {}

    /// Searches queries of about as many ones.
    Status run(std::span<const Query> queries) {
        const std::size_t words = tiles_.words();
        rows_.resize(queries.size() * words);
        for (std::size_t i = 0; i < queries.size(); ++i)
            copy_row(search_.queries, queries[i].number, rows_.data() + i * words);
        std::vector<NearestList> lists(queries.size(), search_.new_list());
        const std::uint32_t middle = queries[queries.size() / 2].ones;
        std::size_t above = order_.group_of(middle), below = above;
        while (below > 0 || above < order_.groups.size()) {
            const bool up = below == 0 || (above < order_.groups.size() &&
                                           order_.groups[above].ones - middle <=
                                               middle - order_.groups[below - 1].ones);
            GPUTEXT_TRY(search_group(order_.groups[up ? above++ : --below], queries, lists));
        }
        std::vector<std::uint32_t> numbers;
        for (const Query& query : queries) numbers.push_back(query.number);
        return search_.put(std::move(numbers), lists);
    }

private:
    Status search_group(const OnesGroup& group, std::span<const Query> queries,
                        std::vector<NearestList>& lists) {
        const BitMetric metric = search_.parameters.metric;
        const Stop stop = search_.execution.stop();
        for (std::size_t begin = group.begin; begin < group.end; begin += block_) {
            const std::size_t end = std::min<std::size_t>(group.end, begin + block_);
            for (std::size_t i = 0; i < queries.size(); ++i) {
                const std::size_t least =
                    least_common(metric, queries[i].ones, group.ones, lists[i].limit());
                if (least == kTooMany) continue;
                const std::size_t found = tiles_.find(rows_.data() + i * tiles_.words(), begin, end,
                                                      static_cast<std::uint32_t>(least),
                                                      search_.parameters.simd, found_.data());
                for (const CommonOnes& near : std::span(found_).first(found)) {
                    const std::uint32_t item = order_.numbers[near.place];
                    if (item == kNoRow) continue;
                    GPUTEXT_TRY(search_.add(
                        queries[i].number, item,
                        bit_distance(metric, queries[i].ones, group.ones, near.common), lists[i]));
                }
            }
            if (stop()) return Status::cancelled();
        }
        return {};
    }

    const Search& search_;
    const OnesOrder& order_;
    const BitTiles& tiles_;
    std::size_t block_;                // places
    std::vector<CommonOnes> found_;    // room for a block's
    std::vector<std::uint64_t> rows_;  // of the queries
};

/// Searches some queries among some items, on all threads.
Status search_tiles(const Search& search, std::span<const std::uint32_t> queries,
                    std::span<const std::uint32_t> items) {
    Execution& execution = search.execution;
    OnesOrder order, query_order;
    GPUTEXT_TRY(order_by_ones(search.items, items, BitTiles::tile_places, execution, order));
    GPUTEXT_TRY(order_by_ones(search.queries, queries, 1, execution, query_order));
    BitTiles tiles;
    GPUTEXT_TRY(tiles.set(search.items, order.numbers, execution));
    std::vector<Query> ordered;
    ordered.reserve(queries.size());
    for (const OnesGroup& group : query_order.groups)
        for (std::uint32_t place = group.begin; place < group.end; ++place)
            ordered.push_back({query_order.numbers[place], group.ones});
    const std::size_t together =
        std::clamp<std::size_t>(ordered.size() / (4 * execution.threads()), 1, kMostTogether);
    const std::size_t batches = (ordered.size() + together - 1) / together;
    execution.begin_phase("comparing bits", batches);
    std::vector<std::optional<TileSearch>> workers(execution.threads());
    return execution.parallel_for(batches, [&](std::size_t batch, unsigned worker) {
        if (!workers[worker]) workers[worker].emplace(search, order, tiles);
        const std::size_t begin = batch * together;
        return workers[worker]->run(std::span<const Query>(ordered).subspan(
            begin, std::min(together, ordered.size() - begin)));
    });
}

// ---- Few of them ----

/// Compares a query with items one by one.
Status compare(const Search& search, std::uint32_t query, std::span<const std::uint32_t> items,
               NearestList& list) {
    const Stop stop = search.execution.stop();
    const std::size_t ones = count_ones(search.queries, query);
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i % kFewPairs == 0 && stop()) return Status::cancelled();
        const std::uint32_t item = items[i];
        GPUTEXT_TRY(
            search.add(query, item,
                       bit_distance(search.parameters.metric, ones, count_ones(search.items, item),
                                    common_ones(search.queries, query, search.items, item)),
                       list));
    }
    return {};
}

/// Compares each query with all of the items, which the threads share.
Status search_few_queries(const Search& search, std::span<const std::uint32_t> queries,
                          std::span<const std::uint32_t> items) {
    Execution& execution = search.execution;
    const std::size_t steps = (items.size() + kItemsOfStep - 1) / kItemsOfStep;
    execution.begin_phase("comparing bits", queries.size() * steps);
    for (const std::uint32_t query : queries) {
        std::vector<NearestList> lists(execution.threads(), search.new_list());
        GPUTEXT_TRY(execution.parallel_for(steps, [&](std::size_t step, unsigned worker) {
            const std::size_t begin = step * kItemsOfStep;
            return compare(search, query,
                           items.subspan(begin, std::min(kItemsOfStep, items.size() - begin)),
                           lists[worker]);
        }));
        for (std::size_t other = 1; other < lists.size(); ++other)
            for (const FoundItem& found : lists[other].found())
                if (found.distance <= lists[0].limit()) GPUTEXT_TRY(lists[0].add(found));
        GPUTEXT_TRY(search.put({query}, std::span(lists).first(1)));
    }
    return {};
}

Status search_all(const Search& search, std::span<const std::uint32_t> queries,
                  std::span<const std::uint32_t> items) {
    return queries.size() <= kFewQueries ? search_few_queries(search, queries, items)
                                         : search_tiles(search, queries, items);
}

/// Small groups by one thread each, the others by all threads, one after the other.
Status search_groups(const Search& search, const KeyGroups& groups) {
    std::vector<std::size_t> small, large;
    for (std::size_t group = 0; group < groups.size(); ++group) {
        const std::size_t pairs = groups.queries_of(group).size() * groups.items_of(group).size();
        (pairs <= kFewPairs ? small : large).push_back(group);
    }
    constexpr std::size_t kGroupsAtOnce = 64;
    const std::size_t tasks = (small.size() + kGroupsAtOnce - 1) / kGroupsAtOnce;
    search.execution.begin_phase("comparing bits", tasks);
    const auto search_some = [&](std::size_t task, unsigned) {
        const std::size_t end = std::min(small.size(), (task + 1) * kGroupsAtOnce);
        std::vector<std::uint32_t> queries;
        std::vector<NearestList> lists;
        for (std::size_t i = task * kGroupsAtOnce; i < end; ++i)
            for (const std::uint32_t query : groups.queries_of(small[i])) {
                queries.push_back(query);
                lists.push_back(search.new_list());
                GPUTEXT_TRY(compare(search, query, groups.items_of(small[i]), lists.back()));
            }
        return search.put(std::move(queries), lists);
    };
    GPUTEXT_TRY(search.execution.parallel_for(tasks, search_some));
    for (const std::size_t group : large)
        GPUTEXT_TRY(search_all(search, groups.queries_of(group), groups.items_of(group)));
    return {};
}

std::vector<std::uint32_t> all_of(std::size_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0u);
    return numbers;
}

Status invalid(std::string message) {
    return {ErrorCode::invalid_argument, std::move(message)};
}

}  // namespace

Status check_nearest_bits(const NearestBitsParameters& parameters, const Vectors& queries,
                          const Vectors& items, const MatchKeys& match, const RowKeys& excluded) {
    if (parameters.k == 0) return invalid("k must be at least 1");
    if (std::isnan(parameters.radius)) return invalid("the radius must be a number");
    for (const Vectors* rows : {&queries, &items}) {
        if (rows->rows >= kNoRow) return invalid("too many rows of bits");
        if (rows->rows > 0 &&
            (rows->type != ElementType::bit || rows->sparse() || rows->dimensions == 0))
            return invalid("rows that are not bits");
    }
    if (queries.rows > 0 && items.rows > 0 && queries.dimensions != items.dimensions)
        return invalid("queries have " + std::to_string(queries.dimensions) + " bits, and items " +
                       std::to_string(items.dimensions));
    if (!excluded.queries.empty() || !excluded.items.empty())
        if (excluded.queries.size() != queries.rows || excluded.items.size() != items.rows)
            return invalid("there must be a key for each query and each item");
    return check_match_keys(match, queries.rows, items.rows);
}

Result<Neighbors> nearest_bits(const NearestBitsParameters& parameters, const Vectors& queries,
                               const Vectors& items, const MatchKeys& match,
                               const RowKeys& excluded, Execution& execution) {
    GPUTEXT_TRY(check_nearest_bits(parameters, queries, items, match, excluded));
    Neighbors answer;
    answer.begins.assign(queries.rows + 1, 0);
    if (queries.rows == 0 || items.rows == 0) return answer;
    MemoryBudget budget(parameters.answer_limit);
    ScatteredNeighbors answers;
    std::mutex mutex;
    const Search search{parameters, queries, items, excluded, execution, budget, answers, mutex};
    if (match.none()) {
        GPUTEXT_TRY(search_all(search, all_of(queries.rows), all_of(items.rows)));
    } else {
        const auto groups = group_by_key(match, execution);
        if (!groups.ok()) return groups.status();
        GPUTEXT_TRY(search_groups(search, *groups));
    }
    GPUTEXT_TRY(answers.put_together(queries.rows, execution, answer));
    return answer;
}

double nearest_bits_cpu_seconds(double pairs, std::size_t bits, unsigned threads) {
    return pairs * (5e-11 + 2e-12 * static_cast<double>(bits)) / threads;
}

double nearest_bits_device_seconds(double pairs, std::size_t bits, bool keyed, unsigned threads) {
    if (keyed) return nearest_bits_cpu_seconds(pairs, bits, threads);
    return 0.01 + pairs * 1e-15 * static_cast<double>(std::max<std::size_t>(bits, 256));
}

}  // namespace gputext
