#include "cpp/sets/similar_sets.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <mutex>
#include <numeric>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/large_pages.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/base/row_buckets.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

/// Products of thresholds and sizes are off by less.
constexpr double kRounding = 1e-9, kRelativeRounding = 1e-12;

constexpr const char* kIndex = "the index of sets";
constexpr const char* kPairs = "the pairs of sets";

std::uint64_t up(double value) {
    return static_cast<std::uint64_t>(std::max(1.0, std::ceil(value * (1 - kRelativeRounding) - kRounding)));
}

/// Whether a pair of a set is nearer than another one.
bool nearer(const SimilarPair& a, const SimilarPair& b) {
    return a.similarity != b.similarity ? a.similarity > b.similarity : a.second < b.second;
}

/// Numbers tokens from 0 by their counts, and of equal ones in their order. False when stopped.
bool number_by_count(std::span<const std::uint32_t> counts, std::vector<std::uint32_t>& numbers,
                     Stop stop) {
    if (counts.empty()) return true;
    std::vector<std::uint32_t> next(*std::ranges::max_element(counts) + std::size_t{2});
    for (const std::uint32_t count : counts) ++next[count + 1];
    if (stop()) return false;
    std::partial_sum(next.begin(), next.end(), next.begin());
    for (std::size_t token = 0; token < counts.size(); ++token)
        numbers[token] = next[counts[token]]++;
    return !stop();
}

/// Sizes are sums of weights where tokens have some.
class SetJoin {
public:
    SetJoin(const SetCollection& sets, const SimilarSetsParameters& parameters,
            Execution& execution)
        : sets_(sets),
          parameters_(parameters),
          execution_(execution),
          budget_(parameters.memory_limit),
          unit_(sets.weights.empty() ? 1 : SetCollection::kWeightUnit),
          workers_(execution.threads()) {}

    Result<SimilarPairs> run();

private:
    /// A set's place among its tokens, rare ones first, of a token that it has.
    struct Posting {
        std::uint32_t rank;  // of the set
        std::uint32_t place;
    };
    struct Worker {
        std::vector<std::uint32_t> seen;  // ranks of sets with a common token
        std::vector<std::uint8_t> state;  // of each rank
        std::vector<SimilarPair> pairs;
        std::size_t counted = 0;
    };

    /// Calls take(i) for each i below `count`, on the threads. Error: cancelled, where it says false.
    template <class Take>
    Status each(std::size_t count, const Take& take);
    Status order();
    Status rank_sets();
    Status add_sizes();
    Status index();
    Status search(std::uint32_t rank, unsigned number);
    Status compare(std::uint32_t rank, std::uint32_t other, Worker& worker);
    Status keep(const SimilarPair& pair, Worker& worker);
    Status keep_nearest(const SimilarPair& pair);
    Result<SimilarPairs> listed_pairs();
    Result<SimilarPairs> nearest_pairs();

    bool side(std::uint32_t rank) const {
        return parameters_.two_tables && ranked_[rank] >= parameters_.split;
    }
    std::uint64_t size(std::uint32_t rank) const { return sizes_[ranked_[rank]]; }
    bool weighted() const { return !weights_.empty(); }
    std::uint32_t weight(std::uint32_t token) const { return weighted() ? weights_[token] : 1; }
    std::span<const std::uint32_t> tokens(std::uint32_t rank) const {
        const std::uint32_t set = ranked_[rank];
        return {tokens_.get() + sets_.begins[set],
                static_cast<std::size_t>(sets_.begins[set + 1] - sets_.begins[set])};
    }
    std::span<Posting> postings(std::size_t table, std::uint32_t token) const {
        const std::vector<std::uint64_t>& begins = list_begins_[table];
        return {lists_[table].get() + begins[token],
                static_cast<std::size_t>(begins[token + 1] - begins[token])};
    }
    /// The fewest tokens that a set of n has in common with a similar one that is no smaller.
    std::uint64_t least_common(std::uint64_t n) const;
    /// The fewest that sets of n and m tokens have in common if they are similar.
    std::uint64_t least_common(std::uint64_t n, std::uint64_t m) const;
    /// The size of the smallest set that may be similar to one of n tokens.
    std::uint64_t least_size(std::uint64_t n) const;
    /// How many of a set's tokens, from the first one on, are enough to find it by.
    std::size_t prefix(std::uint32_t rank, std::uint64_t common) const;

    const SetCollection& sets_;
    const SimilarSetsParameters& parameters_;
    Execution& execution_;
    MemoryBudget budget_;
    double unit_;  // what a token of weight 1 counts
    std::vector<std::uint64_t> sizes_;
    std::vector<std::uint32_t> weights_;  // of renumbered tokens
    std::vector<std::uint32_t> ranked_;  // sets by size
    std::unique_ptr<std::uint32_t[]> tokens_;  // as in sets_, renumbered: rare ones first
    std::uint32_t token_count_ = 0;
    std::vector<std::uint64_t> list_begins_[2];  // of each token's postings, of both tables
    std::unique_ptr<Posting[]> lists_[2];        // by rank
    std::atomic<std::uint64_t> count_{0};
    std::vector<Worker> workers_;
    /// Of each set of the first table, the farthest one on top; each with one of the locks.
    std::vector<std::vector<SimilarPair>> nearest_;
    std::array<std::mutex, 64> locks_;
};

std::uint64_t SetJoin::least_common(std::uint64_t n) const {
    const double size = static_cast<double>(n), t = parameters_.threshold;
    switch (parameters_.measure) {
        case SetMeasure::jaccard:
            // With a larger one it is more.
            return up(2 * t / (1 + t) * size);
        case SetMeasure::containment:
        case SetMeasure::cosine:
            return up(t * size);
        case SetMeasure::overlap:
            break;
    }
    return up(t * unit_);
}

std::uint64_t SetJoin::least_common(std::uint64_t n, std::uint64_t m) const {
    const double a = static_cast<double>(n), b = static_cast<double>(m),
                 t = parameters_.threshold;
    switch (parameters_.measure) {
        case SetMeasure::jaccard:
            return up(t / (1 + t) * (a + b));
        case SetMeasure::containment:
            return up(t * std::min(a, b));
        case SetMeasure::cosine:
            return up(t * std::sqrt(a * b));
        case SetMeasure::overlap:
            break;
    }
    return up(t * unit_);
}

std::uint64_t SetJoin::least_size(std::uint64_t n) const {
    const double size = static_cast<double>(n), t = parameters_.threshold;
    switch (parameters_.measure) {
        case SetMeasure::jaccard:
            return up(t * size);
        case SetMeasure::containment:
            return 1;
        case SetMeasure::cosine:
            return up(t * t * size);
        case SetMeasure::overlap:
            break;
    }
    return up(t * unit_);
}

/// Those behind them are too few. Tokens that no other set has come first, and are not listed.
std::size_t SetJoin::prefix(std::uint32_t rank, std::uint64_t common) const {
    const std::span<const std::uint32_t> all = tokens(rank);
    std::size_t first = all.size();
    if (!weighted()) return common > first ? 0 : first + 1 - static_cast<std::size_t>(common);
    for (std::uint64_t rest = 0; first > 0; --first) {
        rest += weights_[all[first - 1]];
        if (rest >= common) break;
    }
    return first;
}

Status SetJoin::add_sizes() {
    sizes_.assign(sets_.sizes.begin(), sets_.sizes.end());
    if (sets_.weights.empty()) return {};
    for (std::size_t set = 0; set < sets_.size(); ++set) {
        if (set % 1024 == 0 && execution_.stop_requested()) return Status::cancelled();
        const std::span<const std::uint32_t> tokens = sets_[set];
        if (tokens.empty()) continue;
        sizes_[set] = (sizes_[set] - tokens.size()) * sets_.lone_weight;
        for (const std::uint32_t token : tokens) sizes_[set] += sets_.weights[token];
    }
    return {};
}

template <class Take>
Status SetJoin::each(std::size_t count, const Take& take) {
    constexpr std::size_t kOfStep = 1024;
    const std::size_t steps = (count + kOfStep - 1) / kOfStep;
    return execution_.parallel_for(steps, [&](std::size_t step, unsigned) -> Status {
        const std::size_t end = std::min(count, (step + 1) * kOfStep);
        for (std::size_t i = step * kOfStep; i < end; ++i)
            if (!take(i)) return Status::cancelled();
        return {};
    });
}

/// Sets by size, tokens by their number of sets.
Status SetJoin::order() {
    const Stop stop = execution_.stop();
    for (const std::uint32_t token : sets_.tokens) token_count_ = std::max(token_count_, token + 1);
    constexpr std::size_t kBytesOfSet = 4 * sizeof(std::uint32_t) + 2 * sizeof(std::uint64_t);
    constexpr std::size_t kBytesOfToken = 3 * sizeof(std::uint32_t) + 2 * sizeof(std::uint64_t);
    GPUTEXT_TRY(budget_.take(sets_.size() * (kBytesOfSet + execution_.threads()) +
                                 sets_.tokens.size() * sizeof(std::uint32_t) +
                                 token_count_ * kBytesOfToken,
                             kIndex));
    GPUTEXT_TRY(add_sizes());
    GPUTEXT_TRY(rank_sets());
    execution_.begin_phase("sorting sets", sets_.size() / 512 + 2);
    std::vector<std::uint32_t> counts(token_count_), numbers(token_count_);
    GPUTEXT_TRY(each(sets_.size(), [&](std::size_t set) {
        for (const std::uint32_t token : sets_[set])
            std::atomic_ref(counts[token]).fetch_add(1, std::memory_order_relaxed);
        return true;
    }));
    if (!number_by_count(counts, numbers, stop)) return Status::cancelled();
    if (!sets_.weights.empty()) weights_.resize(token_count_);
    for (std::uint32_t token = 0; token < weights_.size(); ++token)
        weights_[numbers[token]] = sets_.weights[token];
    tokens_ = unwritten_pages<std::uint32_t>(sets_.tokens.size());
    return each(sets_.size(), [&](std::size_t set) {
        const std::uint64_t begin = sets_.begins[set], end = sets_.begins[set + 1];
        for (std::uint64_t i = begin; i < end; ++i) tokens_[i] = numbers[sets_.tokens[i]];
        return stoppable_sort(tokens_.get() + begin, tokens_.get() + end, std::less<>(), stop);
    });
}

Status SetJoin::rank_sets() {
    if (sets_.weights.empty()) return order_by_key(sets_.sizes, ranked_, execution_);
    execution_.begin_phase("sorting sets", 1);
    ranked_.resize(sets_.size());
    std::iota(ranked_.begin(), ranked_.end(), 0);
    const auto smaller = [&](std::uint32_t a, std::uint32_t b) {
        return sizes_[a] != sizes_[b] ? sizes_[a] < sizes_[b] : a < b;
    };
    return stoppable_sort(ranked_.begin(), ranked_.end(), smaller, execution_.stop())
               ? Status()
               : Status::cancelled();
}

/// Each set can be found by its first tokens, by sets that are no smaller.
Status SetJoin::index() {
    const std::size_t tables = parameters_.two_tables ? 2 : 1;
    execution_.begin_phase("indexing sets", (2 * ranked_.size() + tables * token_count_) / 1024 + 3);
    for (std::size_t table = 0; table < tables; ++table)
        list_begins_[table].assign(token_count_ + std::size_t{1}, 0);
    const auto each_posting = [&](const auto& take) {
        return each(ranked_.size(), [&](std::size_t i) {
            const auto rank = static_cast<std::uint32_t>(i);
            const std::span<const std::uint32_t> all = tokens(rank);
            const std::size_t first = prefix(rank, least_common(size(rank)));
            for (std::uint32_t place = 0; place < first; ++place)
                take(std::atomic_ref(list_begins_[side(rank)][all[place]]), Posting{rank, place});
            return true;
        });
    };
    GPUTEXT_TRY(each_posting([](std::atomic_ref<std::uint64_t> count, Posting) {
        count.fetch_add(1, std::memory_order_relaxed);
    }));
    for (std::size_t table = 0; table < tables; ++table) {
        std::vector<std::uint64_t>& begins = list_begins_[table];
        // Ends, which become begins as places are taken from behind
        std::partial_sum(begins.begin(), begins.end(), begins.begin());
        GPUTEXT_TRY(budget_.take(begins.back() * sizeof(Posting), kIndex));
        lists_[table] = unwritten_pages<Posting>(begins.back());
    }
    GPUTEXT_TRY(each_posting([&](std::atomic_ref<std::uint64_t> end, Posting posting) {
        lists_[side(posting.rank)][end.fetch_sub(1, std::memory_order_relaxed) - 1] = posting;
    }));
    const auto less = [](const Posting& a, const Posting& b) { return a.rank < b.rank; };
    for (std::size_t table = 0; table < tables; ++table)
        GPUTEXT_TRY(each(token_count_, [&](std::size_t token) {
            const std::span<Posting> list = postings(table, static_cast<std::uint32_t>(token));
            return stoppable_sort(list.begin(), list.end(), less, execution_.stop());
        }));
    return {};
}

/// Pairs of a set and one before it, which is no larger.
Status SetJoin::search(std::uint32_t rank, unsigned number) {
    constexpr std::uint8_t kUnseen = 0, kSeen = 1;
    Worker& worker = workers_[number];
    worker.state.resize(ranked_.size(), kUnseen);
    const std::uint64_t n = size(rank), least = least_size(n);
    const bool own = side(rank), other_side = parameters_.two_tables ? !own : own;
    const std::span<const std::uint32_t> all = tokens(rank);
    // With the smallest similar set it has the fewest in common.
    const std::size_t first = prefix(rank, least_common(std::min(n, least), n));
    for (std::uint32_t place = 0; place < first; ++place) {
        if (execution_.stop_requested()) return Status::cancelled();
        const std::span<const Posting> list = postings(other_side, all[place]);
        const auto begin = std::ranges::partition_point(
            list, [&](const Posting& posting) { return size(posting.rank) < least; });
        for (auto posting = begin; posting != list.end() && posting->rank < rank; ++posting) {
            if (worker.state[posting->rank] == kSeen) continue;
            // This is the first common token: what follows it in both is all that there may be.
            const std::uint64_t most =
                std::min(all.size() - place, tokens(posting->rank).size() - posting->place);
            if (!weighted() && most < least_common(n, size(posting->rank))) continue;
            worker.state[posting->rank] = kSeen;
            worker.seen.push_back(posting->rank);
        }
    }
    Status status;
    for (std::size_t i = 0; i < worker.seen.size(); ++i) {
        if (i % 256 == 255 && execution_.stop_requested()) status = Status::cancelled();
        worker.state[worker.seen[i]] = kUnseen;
        if (status.ok()) status = compare(rank, worker.seen[i], worker);
    }
    worker.seen.clear();
    return status;
}

Status SetJoin::compare(std::uint32_t rank, std::uint32_t other, Worker& worker) {
    const std::span<const std::uint32_t> a = tokens(rank), b = tokens(other);
    const std::uint64_t least = least_common(size(rank), size(other));
    std::uint64_t common = 0, tokens_in_common = 0;
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        if (!weighted() && common + std::min(a.size() - i, b.size() - j) < least) return {};
        if (a[i] == b[j])
            common += weight(a[i]), ++tokens_in_common, ++i, ++j;
        else if (a[i] < b[j])
            ++i;
        else
            ++j;
    }
    double similarity =
        set_similarity(parameters_.measure, size(rank), size(other), common);
    if (parameters_.measure == SetMeasure::overlap) similarity /= unit_;
    if (!(similarity >= parameters_.threshold)) return {};
    const auto [first, second] = std::minmax(ranked_[rank], ranked_[other]);
    const SimilarPair pair{first, second, static_cast<std::uint32_t>(tokens_in_common), similarity};
    return parameters_.nearest > 0 ? keep_nearest(pair) : keep(pair, worker);
}

Status SetJoin::keep(const SimilarPair& pair, Worker& worker) {
    constexpr std::size_t kPairsOfStep = 1 << 11;
    // What is over the most is only counted.
    if (count_.fetch_add(1, std::memory_order_relaxed) >= parameters_.most_pairs) return {};
    if (worker.pairs.size() == worker.counted) {
        GPUTEXT_TRY(budget_.take(2 * kPairsOfStep * sizeof(SimilarPair), kPairs));
        worker.counted += kPairsOfStep;
    }
    worker.pairs.push_back(pair);
    return {};
}

Status SetJoin::keep_nearest(const SimilarPair& pair) {
    const std::lock_guard lock(locks_[pair.first % locks_.size()]);
    std::vector<SimilarPair>& kept = nearest_[pair.first];
    if (kept.size() < parameters_.nearest) {
        GPUTEXT_TRY(budget_.take(2 * sizeof(SimilarPair), kPairs));
        kept.push_back(pair);
    } else if (nearer(pair, kept.front())) {
        std::ranges::pop_heap(kept, nearer);
        kept.back() = pair;
    } else {
        return {};
    }
    std::ranges::push_heap(kept, nearer);
    return {};
}

Result<SimilarPairs> SetJoin::run() {
    constexpr std::size_t kSetsOfStep = 64;
    if (parameters_.nearest > 0) {
        GPUTEXT_TRY(budget_.take(parameters_.split * sizeof nearest_[0], kPairs));
        nearest_.resize(parameters_.split);
    }
    GPUTEXT_TRY(order());
    GPUTEXT_TRY(index());
    const std::size_t steps = (ranked_.size() + kSetsOfStep - 1) / kSetsOfStep;
    const auto search_step = [&](std::size_t step, unsigned worker) -> Status {
        const std::size_t end = std::min(ranked_.size(), (step + 1) * kSetsOfStep);
        for (std::size_t rank = step * kSetsOfStep; rank < end; ++rank)
            GPUTEXT_TRY(search(static_cast<std::uint32_t>(rank), worker));
        return {};
    };
    execution_.begin_phase("comparing sets", steps);
    GPUTEXT_TRY(execution_.parallel_for(steps, search_step));
    return parameters_.nearest > 0 ? nearest_pairs() : listed_pairs();
}

Result<SimilarPairs> SetJoin::listed_pairs() {
    Result<SimilarPairs> answer{SimilarPairs()};
    std::vector<SimilarPair>& pairs = (*answer).pairs;
    (*answer).count = count_;
    if (count_ > parameters_.most_pairs) return answer;
    pairs.reserve(count_);
    for (Worker& worker : workers_) {
        pairs.insert(pairs.end(), worker.pairs.begin(), worker.pairs.end());
        worker.pairs = {};
    }
    const auto less = [](const SimilarPair& a, const SimilarPair& b) {
        return a.first != b.first ? a.first < b.first : a.second < b.second;
    };
    if (!stoppable_sort(pairs.begin(), pairs.end(), less, execution_.stop()))
        return Status::cancelled();
    return answer;
}

Result<SimilarPairs> SetJoin::nearest_pairs() {
    Result<SimilarPairs> answer{SimilarPairs()};
    for (const std::vector<SimilarPair>& kept : nearest_) (*answer).count += kept.size();
    if ((*answer).count > parameters_.most_pairs) return answer;
    std::vector<SimilarPair>& pairs = (*answer).pairs;
    pairs.reserve((*answer).count);
    for (std::size_t set = 0; set < nearest_.size(); ++set) {
        if (set % 1024 == 0 && execution_.stop_requested()) return Status::cancelled();
        std::ranges::sort_heap(nearest_[set], nearer);
        pairs.insert(pairs.end(), nearest_[set].begin(), nearest_[set].end());
    }
    return answer;
}

}  // namespace

double set_similarity(SetMeasure measure, std::uint64_t n, std::uint64_t m, std::uint64_t common) {
    if (n == 0 || m == 0) return 0;
    const double a = static_cast<double>(n), b = static_cast<double>(m),
                 c = static_cast<double>(common);
    switch (measure) {
        case SetMeasure::jaccard:
            return c / (a + b - c);
        case SetMeasure::containment:
            return c / std::min(a, b);
        case SetMeasure::cosine:
            return c / std::sqrt(a * b);
        case SetMeasure::overlap:
            break;
    }
    return c;
}

Result<SimilarPairs> similar_sets(const SetCollection& sets,
                                  const SimilarSetsParameters& parameters, Execution& execution) {
    return status_or_exception([&] { return SetJoin(sets, parameters, execution).run(); });
}

}  // namespace gputext
