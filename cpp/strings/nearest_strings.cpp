#include "cpp/strings/nearest_strings.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/knn/nearest_list.hpp"
#include "cpp/strings/detail/edit_tiles.hpp"
#include "cpp/strings/detail/string_index.hpp"

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

// ---- Counts that are at least so large ----

template <class Count>
Count largest(const Count* counts, std::size_t size) {
    Count most = 0;
    for (std::size_t i = 0; i < size; ++i) most = std::max(most, counts[i]);
    return most;
}

/// Calls visit(place) for each place of counts from `least` to `most`.
template <class Count, class Visit>
void each_between(const Count* counts, std::size_t size, Count least, Count most, Visit&& visit) {
    for (std::size_t i = 0; i < size; ++i)
        if (counts[i] >= least && counts[i] <= most) visit(i);
}

#ifdef GPUTEXT_X86

/// The same of bytes, sixteen at a time.
std::uint8_t largest(const std::uint8_t* counts, std::size_t size) {
    __m128i most = _mm_setzero_si128();
    std::size_t i = 0;
    for (; i + 16 <= size; i += 16)
        most = _mm_max_epu8(most, _mm_loadu_si128(reinterpret_cast<const __m128i*>(counts + i)));
    std::uint8_t lanes[16];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(lanes), most);
    std::uint8_t found = *std::max_element(lanes, lanes + 16);
    for (; i < size; ++i) found = std::max(found, counts[i]);
    return found;
}

template <class Visit>
void each_between(const std::uint8_t* counts, std::size_t size, std::uint8_t least,
                  std::uint8_t most, Visit&& visit) {
    const __m128i low = _mm_set1_epi8(static_cast<char>(least));
    const __m128i high = _mm_set1_epi8(static_cast<char>(most));
    std::size_t i = 0;
    for (; i + 16 <= size; i += 16) {
        const __m128i loaded = _mm_loadu_si128(reinterpret_cast<const __m128i*>(counts + i));
        const __m128i inside = _mm_and_si128(_mm_cmpeq_epi8(_mm_max_epu8(loaded, low), loaded),
                                             _mm_cmpeq_epi8(_mm_min_epu8(loaded, high), loaded));
        auto mask = static_cast<unsigned>(_mm_movemask_epi8(inside));
        for (; mask != 0; mask &= mask - 1)
            visit(i + static_cast<std::size_t>(std::countr_zero(mask)));
    }
    for (; i < size; ++i)
        if (counts[i] >= least && counts[i] <= most) visit(i);
}

#endif

// ---- A search ----

struct Search {
    const NearestStringsParameters& parameters;
    const Strings& queries;
    const Strings& items;
    const RowKeys& excluded;
    Execution& execution;
    MemoryBudget& budget;
    ScatteredNeighbors& answers;
    std::mutex& answers_mutex;

    NearestList new_list() const { return {parameters.k, parameters.radius, budget}; }

    /// Adds the lists of these queries.
    Status put(std::vector<std::uint32_t> of_queries, std::vector<NearestList>& lists) const {
        Neighbors found;
        found.begins.reserve(of_queries.size() + 1);
        found.begins.push_back(0);
        if (!append_sorted(lists, execution.stop(), found)) return Status::cancelled();
        const std::lock_guard lock(answers_mutex);
        answers.add(std::move(of_queries), std::move(found));
        return {};
    }
};

bool counts_edits(StringMetric metric) {
    return metric == StringMetric::edit_rate || metric == StringMetric::levenshtein ||
           metric == StringMetric::osa;
}

/// Items and what is known of them.
struct StringIndex {
    LengthOrder order;
    LetterIndex letters;
    PairIndex pairs;  // for edits
    EditTiles tiles;
    PrefixIndex prefixes;  // for jaro_winkler
    TrigramIndex trigrams;

    Status set(const Strings& strings, std::span<const std::uint32_t> items,
               const NearestStringsParameters& parameters, Stop stop) {
        GPUTEXT_TRY(order.set(strings, items, stop));
        if (parameters.metric == StringMetric::trigram) return trigrams.set(strings, order, stop);
        if (counts_edits(parameters.metric)) {
            GPUTEXT_TRY(pairs.set(strings, order, parameters.simd, stop));
            GPUTEXT_TRY(tiles.set(strings, order, parameters.simd, stop));
        }
        if (parameters.metric == StringMetric::jaro_winkler)
            GPUTEXT_TRY(prefixes.set(strings, order, stop));
        return letters.set(strings, order, parameters.simd, stop);
    }
};

/// What a thread needs; of one index and some queries that are searched together.
class TileSearch {
public:
    TileSearch(const Search& search, const StringIndex& index)
        : search_(search), index_(index), distance_(search.parameters.metric) {}

    /// Searches the queries [begin, end) of `queries`, which are of similar length.
    Status run(std::span<const std::uint32_t> queries);

private:
    /// Items of each block that are compared at first, and the most neighbors for which that pays.
    static constexpr std::size_t kProbes = 4, kMostProbes = 64;

    StringMetric metric() const { return search_.parameters.metric; }
    std::vector<std::size_t> block_order(std::size_t length) const;
    double least_of_block(const IndexBlock& block, std::size_t length) const;
    void set_query(std::uint32_t query);
    Status each_query(std::span<const std::uint32_t> queries, std::vector<NearestList>& lists,
                      std::size_t most);
    Status search_block(const IndexBlock& block, NearestList& list, std::size_t most);
    IndexBlock within_limit(const IndexBlock& block, double limit) const;
    template <class Count>
    void count_trigrams(std::size_t begin, std::size_t end, std::vector<Count>& counts);
    template <class Count>
    Status select(const IndexBlock& groups, const Count* counts, NearestList& list,
                  std::size_t most);
    std::size_t most_common(std::size_t count, std::size_t excess) const;
    double bound(const LengthGroup& group, std::size_t count, std::size_t excess) const;
    double bound_at(const LengthGroup& group, std::size_t count, std::size_t place,
                    double limit) const;
    template <class Count>
    void find_possible(const LengthGroup& group, const Count* counts, Count least, Count most,
                       double limit);
    Status compare(NearestList& list, std::size_t& most, bool exact);

    /// A group's items that have that many in common with the query.
    struct Level {
        double bound;
        std::size_t group;
        std::size_t count;

        bool operator<(const Level& other) const { return bound > other.bound; }
    };

    std::size_t edits_within(const LengthGroup& group, double limit) const;
    std::size_t least_count(const LengthGroup& group, std::size_t edits) const;
    template <class Count>
    bool tiles_pay(const Level& level, const Count* counts, double limit);
    template <class Count>
    Status compare_tiles(const Level& level, const Count* counts, NearestList& list,
                         std::size_t& most);

    const Search& search_;
    const StringIndex& index_;
    StringDistance distance_;
    std::uint32_t number_ = 0;  // of the query
    Symbols query_;
    LetterIndex::Query letters_{};
    PairIndex::Pairs pairs_{};
    std::uint32_t prefix_ = 0;
    std::vector<TrigramIndex::Places> places_;
    std::vector<std::uint8_t> counts_;
    std::vector<std::uint32_t> wide_counts_;
    std::vector<FoundItem> possible_;  // places, with their bounds
    std::size_t looks_ = 0;  // at bounds of items since tiles were found not to pay
    std::vector<Level> levels_;  // a heap, the least bound first
};

/// The block's least bound, of a string of so many symbols.
double TileSearch::least_of_block(const IndexBlock& block, std::size_t length) const {
    const auto groups = index_.order.groups();
    const std::size_t nearest = std::clamp(length, groups[block.first_group].length,
                                           groups[block.end_group - 1].length);
    return least_distance(metric(), length, nearest, length);
}

/// The blocks, those of the most similar lengths first.
std::vector<std::size_t> TileSearch::block_order(std::size_t length) const {
    const auto blocks = index_.order.blocks();
    std::vector<std::size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::vector<double> bounds(blocks.size());
    for (std::size_t block = 0; block < blocks.size(); ++block)
        bounds[block] = least_of_block(blocks[block], length);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return bounds[a] < bounds[b]; });
    return order;
}

/// The most symbols in common with an item of that count and that excess.
std::size_t TileSearch::most_common(std::size_t count, std::size_t excess) const {
    return count + (count == LetterIndex::most) + std::min(letters_.excess(), excess);
}

/// The least distance of an item of the group with that count and that excess.
double TileSearch::bound(const LengthGroup& group, std::size_t count, std::size_t excess) const {
    if (metric() != StringMetric::trigram) count = most_common(count, excess);
    return least_distance(metric(), query_.size(), group.length, count);
}

/// The least distance of an item with that count, by all that is known of it.
double TileSearch::bound_at(const LengthGroup& group, std::size_t count, std::size_t place,
                            double limit) const {
    const std::size_t n = query_.size();
    if (metric() == StringMetric::trigram) return bound(group, count, 0);
    if (metric() == StringMetric::jaro_winkler) {
        const std::size_t common = most_common(count, index_.letters.excess(place));
        return least_distance(metric(), n, group.length, common,
                              index_.prefixes.common(prefix_, place));
    }
    const double least = bound(group, count, index_.letters.excess(place));
    if (least > limit || !counts_edits(metric())) return least;
    return std::max(least, least_distance_of_pairs(metric(), n, group.length,
                                                   index_.pairs.common(pairs_, place)));
}

/// The places of the group's items with these counts that may be near, those of the least bounds
/// first.
template <class Count>
void TileSearch::find_possible(const LengthGroup& group, const Count* counts, Count least,
                               Count most, double limit) {
    possible_.clear();
    each_between(counts, group.end - group.begin, least, most, [&](std::size_t at) {
        ++looks_;
        const double bound = bound_at(group, counts[at], group.begin + at, limit);
        if (bound <= limit)
            possible_.push_back({bound, static_cast<std::uint32_t>(group.begin + at)});
    });
}

/// Compares at most so many of the possible items, whose bounds may be exact, and counts down.
Status TileSearch::compare(NearestList& list, std::size_t& most, bool exact) {
    const Stop stop = search_.execution.stop();
    if (!stoppable_sort(possible_.begin(), possible_.end(), std::less<FoundItem>(), stop))
        return Status::cancelled();
    for (const FoundItem& possible : possible_) {
        if (possible.distance > list.limit() || most == 0) break;
        const std::uint32_t item = index_.order.item(possible.item);
        if (!search_.excluded.differ(number_, item)) continue;
        --most;
        double distance = possible.distance;
        if (!exact)
            GPUTEXT_TRY(distance_(search_.items[item], list.limit(), stop, distance));
        if (!std::isinf(distance)) GPUTEXT_TRY(list.add({distance, item}));
    }
    return {};
}

/// The most edits that the limit leaves of the group's items; no more than the longer length.
std::size_t TileSearch::edits_within(const LengthGroup& group, double limit) const {
    std::size_t edits = std::max(query_.size(), group.length);
    while (edits > 0 && distance_of_counts(metric(), query_.size(), group.length,
                                           static_cast<std::uint32_t>(edits)) > limit)
        --edits;
    return edits;
}

/// Items of the group with a lower count take more edits.
std::size_t TileSearch::least_count(const LengthGroup& group, std::size_t edits) const {
    const std::size_t common = std::max(query_.size(), group.length) - edits;
    return common - std::min({common, letters_.excess(), group.excess});
}

/// Whether so many of the group's items with at most the level's count are possible that tiles take
/// less than single ones. Where they do not, it looks again when as much was spent on single ones.
template <class Count>
bool TileSearch::tiles_pay(const Level& level, const Count* counts, double limit) {
    constexpr std::size_t kEvery = 8;  // a sample
    const LengthGroup& group = index_.order.groups()[level.group];
    const std::size_t size = group.end - group.begin;
    if (!counts_edits(metric()) || !index_.tiles.has(level.group) ||
        looks_ < size / EditTiles::lanes || query_.empty() ||
        query_.size() > EditTiles::longest || std::isinf(limit))
        return false;
    const std::size_t least = least_count(group, edits_within(group, limit));
    std::size_t possible = 0;
    for (std::size_t at = 0; at < size; at += kEvery)
        possible += counts[at] >= least && counts[at] <= level.count;
    // As measured: nanoseconds of a single one, and cells of tiles in a nanosecond
    const bool pay =
        possible * kEvery * (40 + 3 * group.length) * 50 >= size * query_.size() * group.length;
    if (!pay) looks_ = 0;
    return pay;
}

/// Compares all of the group's items that have at most the level's count.
template <class Count>
Status TileSearch::compare_tiles(const Level& level, const Count* counts, NearestList& list,
                                 std::size_t& most) {
    const LengthGroup& group = index_.order.groups()[level.group];
    const std::size_t n = query_.size(), m = group.length, size = group.end - group.begin;
    const std::vector<std::uint8_t> bytes = EditTiles::query(query_);
    const bool exact = EditTiles::is_exact(bytes);
    for (std::size_t begin = 0; begin < size; begin += EditTiles::lanes) {
        if (search_.execution.stop_requested()) return Status::cancelled();
        const std::size_t end = std::min(size, begin + EditTiles::lanes);
        const std::size_t edits_left = edits_within(group, list.limit());
        if (edits_left < std::max(n, m) - std::min(n, m)) return {};
        if (largest(counts + begin, end - begin) < least_count(group, edits_left)) continue;
        std::uint8_t edits[EditTiles::lanes];
        index_.tiles.edits(bytes, level.group, m, begin / EditTiles::lanes, edits_left,
                           metric() == StringMetric::osa, edits);
        possible_.clear();
        each_between(edits, end - begin, std::uint8_t{0}, static_cast<std::uint8_t>(edits_left),
                     [&](std::size_t lane) {
                         const std::size_t at = begin + lane;
                         if (counts[at] > level.count) return;  // compared before
                         possible_.push_back({distance_of_counts(metric(), n, m, edits[lane]),
                                              static_cast<std::uint32_t>(group.begin + at)});
                     });
        GPUTEXT_TRY(compare(list, most, exact));
    }
    return {};
}

/// Compares the items of the groups that may be near, those of the least bounds first, and at most
/// so many. The counts begin with those of the first group.
template <class Count>
Status TileSearch::select(const IndexBlock& groups, const Count* counts, NearestList& list,
                          std::size_t most) {
    const std::size_t first = index_.order.groups()[groups.first_group].begin;
    // A few of the best ones are no reason to compare all of them.
    const bool few = most != SIZE_MAX;
    looks_ = 0;
    levels_.clear();
    for (std::size_t number = groups.first_group; number < groups.end_group; ++number) {
        const LengthGroup& group = index_.order.groups()[number];
        const std::size_t count = largest(counts + (group.begin - first), group.end - group.begin);
        const double least = bound(group, count, group.excess);
        if (least <= list.limit()) levels_.push_back({least, number, count});
    }
    std::make_heap(levels_.begin(), levels_.end());
    while (most > 0 && !levels_.empty() && levels_.front().bound <= list.limit()) {
        std::pop_heap(levels_.begin(), levels_.end());
        const Level level = levels_.back();
        levels_.pop_back();
        const LengthGroup& group = index_.order.groups()[level.group];
        const Count* const of_group = counts + (group.begin - first);
        if (!few && tiles_pay(level, of_group, list.limit())) {
            GPUTEXT_TRY(compare_tiles(level, of_group, list, most));
            continue;
        }
        // All counts at once, where that compares none in vain: the limit does not fall.
        std::size_t least = level.count;
        const bool all = search_.parameters.k == KnnParameters::all_items;
        while (all && least > 0 && bound(group, least - 1, group.excess) <= list.limit()) --least;
        find_possible(group, of_group, static_cast<Count>(least), static_cast<Count>(level.count),
                      list.limit());
        GPUTEXT_TRY(compare(list, most, metric() == StringMetric::trigram));
        if (least == 0) continue;
        const double next = bound(group, least - 1, group.excess);
        if (next > list.limit()) continue;
        levels_.push_back({next, level.group, least - 1});
        std::push_heap(levels_.begin(), levels_.end());
    }
    return {};
}

/// The block's groups of lengths that may be near: bounds grow with the difference of lengths.
IndexBlock TileSearch::within_limit(const IndexBlock& block, double limit) const {
    IndexBlock groups = block;
    const auto near = [&](std::size_t number) {
        const LengthGroup& group = index_.order.groups()[number];
        return least_distance(metric(), query_.size(), group.length, query_.size()) <= limit;
    };
    while (groups.first_group < groups.end_group && !near(groups.first_group)) ++groups.first_group;
    while (groups.first_group < groups.end_group && !near(groups.end_group - 1)) --groups.end_group;
    return groups;
}

/// Counts of the places from `begin` to `end`.
template <class Count>
void TileSearch::count_trigrams(std::size_t begin, std::size_t end, std::vector<Count>& counts) {
    counts.assign(end - begin, 0);
    for (const TrigramIndex::Places& places : places_) {
        auto place = std::lower_bound(places.begin(), places.end(), begin);
        const auto last = std::lower_bound(place, places.end(), end);
        for (; place != last; ++place) ++counts[*place - begin];
    }
}

/// Compares the query with at most so many of the block's items.
Status TileSearch::search_block(const IndexBlock& block, NearestList& list, std::size_t most) {
    const IndexBlock groups = within_limit(block, list.limit());
    if (groups.first_group == groups.end_group) return {};
    const std::size_t begin = index_.order.groups()[groups.first_group].begin,
                      end = index_.order.groups()[groups.end_group - 1].end;
    if (metric() != StringMetric::trigram) {
        counts_.resize(LengthOrder::block_places + 16);
        index_.letters.count(letters_, begin, end, counts_.data());
    } else if (index_.trigrams.wide() && query_.size() > UINT8_MAX) {
        // A count is at most as large as the smaller set.
        count_trigrams(begin, end, wide_counts_);
        return select(groups, wide_counts_.data(), list, most);
    } else {
        count_trigrams(begin, end, counts_);
    }
    return select(groups, counts_.data(), list, most);
}

void TileSearch::set_query(std::uint32_t query) {
    number_ = query;
    query_ = search_.queries[query];
    if (metric() == StringMetric::trigram) {
        index_.trigrams.find(query_, places_);
        return;
    }
    distance_.set_query(query_);
    letters_ = index_.letters.query(query_);
    if (counts_edits(metric())) pairs_ = PairIndex::of(query_);
    if (metric() == StringMetric::jaro_winkler) prefix_ = PrefixIndex::of(query_);
}

/// Compares each query with at most so many items of each block.
Status TileSearch::each_query(std::span<const std::uint32_t> queries,
                              std::vector<NearestList>& lists, std::size_t most) {
    const Stop stop = search_.execution.stop();
    const std::size_t middle = search_.queries.length(queries[queries.size() / 2]);
    for (const std::size_t number : block_order(middle)) {
        const IndexBlock& block = index_.order.blocks()[number];
        for (std::size_t i = 0; i < queries.size(); ++i) {
            if (stop()) return Status::cancelled();
            if (least_of_block(block, search_.queries.length(queries[i])) > lists[i].limit())
                continue;
            set_query(queries[i]);
            GPUTEXT_TRY(search_block(block, lists[i], most));
        }
    }
    return {};
}

Status TileSearch::run(std::span<const std::uint32_t> queries) {
    std::vector<NearestList> lists(queries.size(), search_.new_list());
    const std::size_t k = search_.parameters.k;
    // A near item may lie in any block. How far the k-th of a few of each block's best ones is bounds
    // the search. Trigrams are not compared a second time.
    if (index_.order.blocks().size() > 1 && k <= kMostProbes &&
        metric() != StringMetric::trigram) {
        GPUTEXT_TRY(each_query(queries, lists, std::max(k, kProbes)));
        for (NearestList& list : lists) list.keep_limit();
    }
    GPUTEXT_TRY(each_query(queries, lists, SIZE_MAX));
    return search_.put({queries.begin(), queries.end()}, lists);
}

// ---- Groups of queries and items ----

/// Queries that are searched together.
constexpr std::size_t kTile = 64;
/// Fewer pairs are compared one by one.
constexpr std::size_t kFewPairs = 4096;

/// Searches some queries among some items, on all threads.
Status search_indexed(const Search& search, std::vector<std::uint32_t> queries,
                      std::span<const std::uint32_t> items) {
    const Stop stop = search.execution.stop();
    StringIndex index;
    search.execution.begin_phase("indexing strings", 1);
    GPUTEXT_TRY(index.set(search.items, items, search.parameters, stop));
    const auto shorter = [&](std::uint32_t a, std::uint32_t b) {
        const std::size_t of_a = search.queries.length(a), of_b = search.queries.length(b);
        return of_a != of_b ? of_a < of_b : a < b;
    };
    if (!stoppable_sort(queries.begin(), queries.end(), shorter, stop)) return Status::cancelled();
    const std::size_t tiles = (queries.size() + kTile - 1) / kTile;
    search.execution.begin_phase("comparing strings", tiles);
    std::vector<std::optional<TileSearch>> workers(search.execution.threads());
    return search.execution.parallel_for(tiles, [&](std::size_t tile, unsigned worker) {
        if (!workers[worker]) workers[worker].emplace(search, index);
        const std::size_t begin = tile * kTile, end = std::min(queries.size(), begin + kTile);
        return workers[worker]->run(std::span(queries).subspan(begin, end - begin));
    });
}

/// Compares each query with each item.
Status search_plainly(const Search& search, StringDistance& distance,
                      std::span<const std::uint32_t> queries,
                      std::span<const std::uint32_t> items) {
    const Stop stop = search.execution.stop();
    std::vector<NearestList> lists(queries.size(), search.new_list());
    for (std::size_t i = 0; i < queries.size(); ++i) {
        if (stop()) return Status::cancelled();
        const Symbols query = search.queries[queries[i]];
        distance.set_query(query);
        for (const std::uint32_t item : items) {
            const Symbols string = search.items[item];
            if (!search.excluded.differ(queries[i], item) ||
                least_distance(search.parameters.metric, query.size(), string.size(),
                               query.size()) > lists[i].limit())
                continue;
            double found = 0;
            GPUTEXT_TRY(distance(string, lists[i].limit(), stop, found));
            if (!std::isinf(found)) GPUTEXT_TRY(lists[i].add({found, item}));
        }
    }
    return search.put({queries.begin(), queries.end()}, lists);
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
    search.execution.begin_phase("comparing strings", tasks);
    std::vector<std::optional<StringDistance>> distances(search.execution.threads());
    const auto search_some = [&](std::size_t task, unsigned worker) {
        if (!distances[worker]) distances[worker].emplace(search.parameters.metric);
        const std::size_t end = std::min(small.size(), (task + 1) * kGroupsAtOnce);
        for (std::size_t i = task * kGroupsAtOnce; i < end; ++i)
            GPUTEXT_TRY(search_plainly(search, *distances[worker], groups.queries_of(small[i]),
                                       groups.items_of(small[i])));
        return Status();
    };
    GPUTEXT_TRY(search.execution.parallel_for(tasks, search_some));
    for (const std::size_t group : large) {
        const auto queries = groups.queries_of(group);
        GPUTEXT_TRY(search_indexed(search, {queries.begin(), queries.end()},
                                   groups.items_of(group)));
    }
    return {};
}

std::vector<std::uint32_t> all_of(std::size_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0u);
    return numbers;
}

}  // namespace

Status check_nearest_strings(const NearestStringsParameters& parameters, const Strings& queries,
                             const Strings& items, const MatchKeys& match,
                             const RowKeys& excluded) {
    const auto invalid = [](std::string message) {
        return Status(ErrorCode::invalid_argument, std::move(message));
    };
    if (parameters.k == 0) return invalid("k must be at least 1");
    if (std::isnan(parameters.radius)) return invalid("the radius must be a number");
    if (!excluded.queries.empty() || !excluded.items.empty())
        if (excluded.queries.size() != queries.size() || excluded.items.size() != items.size())
            return invalid("there must be a key for each query and each item");
    return check_match_keys(match, queries.size(), items.size());
}

Result<Neighbors> nearest_strings(const NearestStringsParameters& parameters,
                                  const Strings& queries, const Strings& items,
                                  const MatchKeys& match, const RowKeys& excluded,
                                  Execution& execution) {
    GPUTEXT_TRY(check_nearest_strings(parameters, queries, items, match, excluded));
    Neighbors answer;
    answer.begins.assign(queries.size() + 1, 0);
    if (queries.size() == 0 || items.size() == 0) return answer;
    MemoryBudget budget(parameters.answer_limit);
    ScatteredNeighbors answers;
    std::mutex mutex;
    const Search search{parameters, queries, items, excluded, execution, budget, answers, mutex};
    if (match.none()) {
        GPUTEXT_TRY(search_indexed(search, all_of(queries.size()), all_of(items.size())));
    } else {
        const auto groups = group_by_key(match, execution);
        if (!groups.ok()) return groups.status();
        GPUTEXT_TRY(search_groups(search, *groups));
    }
    GPUTEXT_TRY(answers.put_together(queries.size(), execution, answer));
    return answer;
}

double nearest_strings_cpu_seconds(StringMetric metric, double pairs, std::uint64_t symbols,
                                   unsigned threads) {
    // As measured for names of 24 characters: a pair, and what each symbol takes besides.
    const double pair = metric == StringMetric::trigram ? 1.5e-9 : 0.6e-9;
    return (pairs * pair + static_cast<double>(symbols) * 2e-8) / threads;
}

double nearest_strings_device_seconds(StringMetric metric, double pairs, std::uint64_t symbols,
                                      bool keyed, unsigned threads) {
    if (keyed) return nearest_strings_cpu_seconds(metric, pairs, symbols, threads);
    // As measured on an H100 with 16 cores: two filters of all pairs, and what each symbol takes on
    // the host.
    const double pair = metric == StringMetric::jaro_winkler ? 1.8e-12 : 1.1e-12;
    return 0.01 + pairs * pair + static_cast<double>(symbols) * 4e-8 / threads;
}

}  // namespace gputext
