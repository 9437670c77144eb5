#include "kernels/terms/detail/search.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/base/early_launch.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/knn/neighbor_lists.hpp"
#include "kernels/terms/detail/bounded_terms.hpp"
#include "kernels/terms/detail/queries.hpp"
#include "kernels/terms/detail/rows.cuh"

namespace gputext::gpu {

/// Exact distances of the items that the filter of terms found.
struct TermScoreJob {
    TermQueries queries;
    std::uint32_t most_terms;  // of a query
    TermRows items;
    std::uint32_t first_item;  // number of the first of them
    QuerySelection selection;
    const float* least;  // scores below which found items are left out, by query; or null
    ListsView lists;
    const float* gates;    // that they were found by
    BoundedTerms bounded;  // that were left out of scores
    LightQueries light;
    unsigned long long* rescored;  // distances computed are counted here
    unsigned long long* found;     // and items found here
};

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;
constexpr std::uint32_t kMostQueries = 65535;  // of a launch
constexpr std::uint32_t kBlocks = 2048;        // of a launch, if there is work for them

constexpr unsigned kAhead = 4;               // terms of a lane under way
constexpr std::uint32_t kMostStaged = 2048;  // terms of a query in shared memory

/// A query's terms, by ascending columns.
struct QueryTerms {
    const double* weights;
    const std::uint32_t* columns;
    std::uint32_t count;
};

/// Copies them to shared memory if there is room for so many. By the block, all of which has them
/// after the next barrier.
__device__ QueryTerms stage_terms(const TermQueries& queries, std::uint32_t query,
                                  std::uint32_t room, double* memory) {
    const RowSpan span = span_of_row(queries.rows, query);
    const auto count = static_cast<std::uint32_t>(span.end - span.begin);
    const double* const weights = queries.weights + span.begin;
    const std::uint32_t* const columns = queries.rows.columns + span.begin;
    if (count > room) return {weights, columns, count};
    auto* const staged = reinterpret_cast<std::uint32_t*>(memory + room);
    for (std::uint32_t i = threadIdx.x; i < count; i += kThreads) {
        memory[i] = weights[i];
        staged[i] = columns[i];
    }
    return {memory, staged, count};
}

/// How many of a query's terms are before each of some columns: the places where these are, if the
/// query has them.
__device__ void find_places(const QueryTerms& terms, const std::uint32_t (&columns)[kAhead],
                            std::uint32_t (&places)[kAhead]) {
#pragma unroll
    for (std::uint32_t& place : places) place = 0;
    if (terms.count == 0) return;
    for (std::uint32_t step = 0x80000000u >> __clz(terms.count); step > 0; step /= 2)
#pragma unroll
        for (unsigned n = 0; n < kAhead; ++n)
            if (step <= terms.count - places[n] && terms.columns[places[n] + step - 1] < columns[n])
                places[n] += step;
}

/// The distance, NaN for rows that share no term. By a warp.
template <class T>
__device__ double distance_of(const TermScoreJob& job, const QueryTerms& own, double own_square,
                              std::uint32_t item, double* memory) {
    const RowSpan span = span_of_row(job.items, item);
    const double square = job.items.squares[item];
    const auto* const elements = static_cast<const T*>(job.items.elements);
    OrderedSum products(memory);
    bool shared = false;
    for (std::uint64_t base = span.begin; base < span.end; base += 32 * kAhead) {
        const std::uint64_t first = base + threadIdx.x % 32;
        std::uint32_t columns[kAhead], places[kAhead];
        T counts[kAhead];
#pragma unroll
        for (unsigned n = 0; n < kAhead; ++n) {
            const std::uint64_t at = first + 32 * n;
            columns[n] = at < span.end ? job.items.columns[at] : UINT32_MAX;
            counts[n] = at < span.end ? elements[at] : T{};
        }
        find_places(own, columns, places);
        bool has[kAhead];
        double product[kAhead];
#pragma unroll
        for (unsigned n = 0; n < kAhead; ++n) {
            has[n] = false;
            product[n] = 0;
            if (first + 32 * n >= span.end || places[n] >= own.count ||
                own.columns[places[n]] != columns[n])
                continue;
            const double a = own.weights[places[n]];
            const double b = __dmul_rn(as_double(counts[n]), job.items.factors[columns[n]]);
            has[n] = a != 0 && b != 0;
            product[n] = __dmul_rn(a, b);
        }
#pragma unroll
        for (unsigned n = 0; n < kAhead; ++n) {
            shared |= has[n];
            products.add(has[n], columns[n], product[n]);
        }
    }
    const double sum = products.total();
    if (!__any_sync(~0u, shared)) return nan("");
    if (job.items.metric == Metric::inner_product) return __dsub_rn(0, sum);
    const double squares = __dmul_rn(own_square, square);
    const double cosine = __ddiv_rn(sum, __dsqrt_rn(squares));
    return __dsub_rn(1, cosine < -1 ? -1.0 : cosine > 1 ? 1.0 : cosine);
}

/// Blocks with the same blockIdx.y take the found items of one query, a warp each. The queries and
/// the selection were written before the previous launch, so that they may be read before
/// wait_for_previous(). `room`: terms that shared memory has room for.
template <class T>
__global__ __launch_bounds__(kThreads) void score_found(TermScoreJob job, std::uint32_t first,
                                                        std::uint32_t room) {
    extern __shared__ double memory[];
    __shared__ double sums[kWarps][OrderedSum::size];
    let_next_begin();
    const ListsView& lists = job.lists;
    const std::uint32_t query = job.selection[first + blockIdx.y];
    const QueryTerms own = stage_terms(job.queries, query, room, memory);
    const double own_square = job.queries.rows.squares[query];
    __syncthreads();
    wait_for_previous();
    const std::size_t begin = std::size_t{query} * lists.capacity;
    const std::uint32_t count = lists.counts[query];
    const std::uint32_t kept = lists.kept[query];
    if (count > lists.capacity) return;
    const double limit = lists.limits[query];
    const float least = job.least != nullptr ? job.least[query] : -INFINITY;
    const unsigned step = light_step(job.bounded, job.light, job.queries, query, job.gates[query]);
    unsigned scored = 0;
    for (std::uint32_t i = kept + blockIdx.x * kWarps + threadIdx.x / 32; i < count;
         i += kWarps * gridDim.x) {
        double distance = nan("");
        const std::uint32_t item = lists.items[begin + i] - job.first_item;
        const auto most = [&] {
            return lists.scores[begin + i] +
                   (step == 0 ? 0 : __uint2float_ru(step * job.bounded.lengths[item]));
        };
        if (!(least > -INFINITY) || !(most() < least)) {
            distance = distance_of<T>(job, own, own_square, item, sums[threadIdx.x / 32]);
            ++scored;
        }
        if (threadIdx.x % 32 == 0)
            lists.keys[begin + i] =
                distance <= limit
                    ? ordered_bits(static_cast<std::uint64_t>(__double_as_longlong(distance)))
                    : kNoDistance;
    }
    const bool all = !(least > -INFINITY);
    if (!all && threadIdx.x % 32 == 0 && scored > 0)
        atomicAdd(job.rescored, static_cast<unsigned long long>(scored));
    if (blockIdx.x == 0 && threadIdx.x == 0 && count > kept) {
        atomicAdd(job.found, static_cast<unsigned long long>(count - kept));
        if (all) atomicAdd(job.rescored, static_cast<unsigned long long>(count - kept));
    }
}

}  // namespace

/// Writes the keys of found items, for NeighborLists::keep(): those that share no term with the
/// query, or are beyond its limit, get kNoDistance.
Status score_terms(const TermScoreJob& job, cudaStream_t stream) {
    const std::uint32_t room = std::min(job.most_terms, kMostStaged);
    const std::size_t bytes = room * (sizeof(double) + sizeof(std::uint32_t));
    for (std::uint32_t first = 0; first < job.selection.count; first += kMostQueries) {
        const std::uint32_t queries = std::min(kMostQueries, job.selection.count - first);
        const std::uint32_t most = std::max(1u, blocks_for(job.lists.capacity, kWarps));
        const dim3 blocks(std::clamp(kBlocks / queries, 1u, most), queries);
        GPUTEXT_TRY(with_term_type(job.items.type, [&](auto element) {
            return launch_early("scoring neighbors", score_found<decltype(element)>, blocks,
                                kThreads, bytes, stream, job, first, room);
        }));
    }
    return {};
}

namespace {

constexpr std::uint32_t kMostGuessedK = 1024;
constexpr std::uint32_t kTilesForSample = 20;  // one of so many is sampled
constexpr std::uint32_t kMostSampled = 32;
constexpr double kLittleWork = 1e9;  // postings: some milliseconds
constexpr std::size_t kFewQueries = 8;
constexpr std::size_t kMostWideGroups = 32768;

std::uint32_t tiles_of(std::size_t items) {
    return static_cast<std::uint32_t>((items + kTermTile - 1) / kTermTile);
}

std::uint32_t sampled_tiles(std::size_t items) {
    return std::clamp(tiles_of(items) / kTilesForSample, 1u, kMostSampled);
}

}  // namespace

NeighborLists::Shape TermSearch::shape_of(std::size_t k, double radius, std::size_t items) {
    constexpr std::uint32_t kShort = NeighborLists::kShort;
    const bool open = k >= items && radius < std::numeric_limits<double>::infinity();
    if (open) return {kShort, kShort, false, true};
    const std::size_t kept = std::min(k, items);
    const auto short_k = static_cast<std::uint32_t>(kept);
    if (kept <= kMostGuessedK)
        return {short_k, std::clamp(32 * std::bit_ceil(short_k), 1024u, kShort), true, false};
    const std::size_t capacity = std::min(items, kept + std::max<std::size_t>(kept / 2, 4096));
    return {short_k, static_cast<std::uint32_t>(std::max<std::size_t>(capacity, kShort + 1)), true,
            false};
}

std::size_t TermSearch::bytes_per_query(const NeighborLists::Shape& shape, std::size_t items) {
    return NeighborLists::bytes_per_query(shape) +
           (3 + sampled_tiles(items) * kTermGroups) * sizeof(float) +
           34 * sizeof(std::uint32_t);  // failed queries, at every depth
}

std::size_t TermSearch::bytes_for_scores(const NeighborLists::Shape& shape, std::size_t queries,
                                         std::size_t items) {
    const std::size_t groups = std::size_t{tiles_of(items)} * kWideGroups;
    if (shape.open || !shape.is_short() || queries > kFewQueries || groups > kMostWideGroups ||
        4 * std::size_t{shape.k} > groups)
        return 0;
    return queries * (tiles_of(items) * kTermTile * sizeof(int) + groups * sizeof(float));
}

Status TermSearch::allocate(const NeighborLists::Shape& shape, std::uint32_t queries,
                            std::size_t items, bool keep_scores, std::function<Status()> taken,
                            Execution& execution, TermTimers& timers, cudaStream_t stream) {
    execution_ = &execution;
    timers_ = &timers;
    stream_ = stream;
    taken_ = std::move(taken);
    GPUTEXT_TRY(lists_.allocate(shape, queries, stream));
    GPUTEXT_TRY(gates_.allocate(queries, stream));
    GPUTEXT_TRY(proven_.allocate(queries, stream));
    GPUTEXT_TRY(least_.allocate(queries, stream));
    GPUTEXT_TRY(failed_.allocate(queries, stream));
    // A large number: gates from scores that are kept are proven, but for infinite ones.
    GPUTEXT_TRY(cuda_status(cudaMemsetAsync(proven_.data(), 0x7f, queries * sizeof(float), stream),
                            "clearing"));
    std::size_t samples = sampled_tiles(items) * kTermGroups;
    if (keep_scores && bytes_for_scores(shape, queries, items) > 0) {
        samples = std::max<std::size_t>(samples, tiles_of(items) * kWideGroups);
        GPUTEXT_TRY(scores_.allocate(std::size_t{queries} * tiles_of(items) * kTermTile, stream));
    }
    GPUTEXT_TRY(sampled_.allocate(queries * samples, stream));
    GPUTEXT_TRY(counters_.allocate(3, stream));
    return cuda_status(cudaMemsetAsync(counters_.data(), 0, 3 * sizeof(unsigned long long), stream),
                       "clearing counts");
}

void TermSearch::begin(const TermQueries& queries, std::uint32_t most_terms, double radius) {
    queries_ = queries;
    most_terms_ = most_terms;
    radius_ = radius;
}

Status TermSearch::counts(std::uint64_t& rescored, std::uint64_t& found) {
    unsigned long long counts[2];
    GPUTEXT_TRY(download(counters_.data() + 1, counts, 2, stream_, "counting distances"));
    rescored = counts[0];
    found = counts[1];
    return {};
}

/// A job that sums the postings of all terms.
TermFilterJob TermSearch::job(const QuerySelection& selection, std::uint32_t begin,
                              std::uint32_t end) const {
    TermFilterJob job{};
    job.index = index_;
    job.queries = queries_;
    job.selection = selection;
    job.most_terms = most_terms_;
    job.gates = gates_.data();
    job.first_item = first_item_;
    job.begin = begin;
    job.end = end;
    job.lists = lists_.view();
    return job;
}

/// A job for all queries, with products for dense terms where there are any.
TermFilterJob TermSearch::dense_job(std::uint32_t begin, std::uint32_t end) const {
    TermFilterJob job = this->job({nullptr, queries_.rows.rows}, begin, end);
    job.dense = dense_;
    job.dense_queries = dense_queries_.view();
    job.dense_scores = dense_queries_.scores();
    job.bounded = bounded_;
    job.light = light_queries_.view();
    return job;
}

TermGates TermSearch::gates(const QuerySelection& selection, float* to) const {
    const bool level = index_.items.metric == Metric::inner_product;
    return {queries_, selection, {queries_.residuals, index_.residual}, to,
            level ? index_.items.squares : nullptr};
}

TermGates TermSearch::dense_gates(float* to) const {
    TermGates gates = this->gates({nullptr, queries_.rows.rows}, to);
    if (dense_.padded > 0) gates.error = dense_error(dense_, dense_queries_.view());
    return gates;
}

/// How many postings the queries touch, about: at most every term's in every item.
Status TermSearch::measure_work() {
    work_ = static_cast<double>(queries_.rows.stored) * index_.items.rows;
    if (work_ <= kLittleWork) return {};
    GPUTEXT_TRY(cuda_status(
        cudaMemsetAsync(counters_.data(), 0, sizeof(unsigned long long), stream_), "clearing"));
    GPUTEXT_TRY(
        count_term_work(job({nullptr, queries_.rows.rows}, 0, 0), counters_.data(), stream_));
    unsigned long long work = 0;
    GPUTEXT_TRY(download_value(counters_.data(), work, stream_, "counting postings"));
    work_ = static_cast<double>(work);
    return {};
}

Status TermSearch::search(const TermIndex& index, const DenseTerms& dense,
                          const BoundedTerms& bounded, std::uint32_t first_item) {
    index_ = index;
    dense_ = dense;
    bounded_ = dense.padded > 0 ? BoundedTerms() : bounded;
    first_item_ = first_item;
    const QuerySelection all{nullptr, queries_.rows.rows};
    const std::uint32_t end = first_item + index.items.rows;
    if (all.count == 0 || index.items.rows == 0) return {};
    const NeighborLists::Shape& shape = lists_.shape();
    const bool first = first_item == 0;
    if (first && scores_.size() > 0) return search_by_scores(first_item, end);
    if (first) GPUTEXT_TRY(lists_.reset(all.count, radius_));
    GPUTEXT_TRY(measure_work());
    if (shape.open || !first) return search_range(all, first_item, end);
    if (shape.is_short() && 8 * std::size_t{shape.k} <= index.items.rows)
        return search_by_guess(first_item, end);
    return search_directly(all, first_item, end, true);
}

Status TermSearch::search_by_guess(std::uint32_t begin, std::uint32_t end) {
    if (dense_.padded > 0) GPUTEXT_TRY(dense_queries_.load(dense_, queries_, stream_));
    if (bounded_.frequencies != nullptr)
        GPUTEXT_TRY(light_queries_.load(bounded_, queries_, stream_));
    GPUTEXT_TRY(guess());
    timers_->filter.begin();
    GPUTEXT_TRY(run_term_filter(dense_job(begin, end), work_, execution_->stop(), stream_));
    timers_->filter.end();
    GPUTEXT_TRY(score_and_keep(dense_gates(gates_.data()), true));
    GPUTEXT_TRY(set_term_gates(dense_gates(proven_.data()), lists_.view().limits, stream_));
    return search_failed(begin, end);
}

/// Gates from a sample.
Status TermSearch::guess() {
    const std::size_t items = index_.items.rows;
    const std::uint32_t tiles = sampled_tiles(items);
    timers_->sample.begin();
    GPUTEXT_TRY(sample_terms(dense_job(0, 0), tiles, sampled_.data(), stream_));
    const std::uint32_t groups = tiles * kTermGroups;
    const double samples = std::min<double>(tiles * kTermTile, static_cast<double>(items));
    const std::uint32_t rank =
        rank_of_gate(lists_.shape().k + 1.0, samples, static_cast<double>(items), groups);
    GPUTEXT_TRY(guess_term_gates(dense_gates(gates_.data()), lists_.view().limits, sampled_.data(),
                                 groups, rank, stream_));
    timers_->sample.end();
    return {};
}

/// For few queries: sums only once, and finds gates in the sums themselves.
Status TermSearch::search_by_scores(std::uint32_t begin, std::uint32_t end) {
    const TermFilterJob all = job({nullptr, queries_.rows.rows}, begin, end);
    work_ = static_cast<double>(queries_.rows.stored) * index_.items.rows;
    lists_.begin_reset(radius_);
    const TermGates gates = this->gates(all.selection, gates_.data());
    timers_->filter.begin();
    GPUTEXT_TRY(score_all_terms(all, radius_, scores_.data(), sampled_.data(), stream_));
    GPUTEXT_TRY(filter_scores(all, gates, radius_, scores_.data(), sampled_.data(),
                              lists_.shape().k, stream_));
    timers_->filter.end();
    GPUTEXT_TRY(score(gates, false));
    GPUTEXT_TRY(execution_->checkpoint(0));
    std::uint32_t count = 0;
    timers_->sort.begin();
    GPUTEXT_TRY(lists_.keep_and_take_failed(all.selection, gates_.data(), proven_.data(),
                                            failed_.data(), count));
    timers_->sort.end();
    return search_again(count, begin, end);
}

/// Searches for those queries again whose lists overflowed, or whose gates are above what is
/// proven.
Status TermSearch::search_failed(std::uint32_t begin, std::uint32_t end) {
    const QuerySelection all{nullptr, queries_.rows.rows};
    std::uint32_t count = 0;
    GPUTEXT_TRY(lists_.take_failed(all, gates_.data(), proven_.data(), failed_.data(), count));
    return search_again(count, begin, end);
}

/// Searches for the first `count` failed ones.
Status TermSearch::search_again(std::uint32_t count, std::uint32_t begin, std::uint32_t end) {
    if (count == 0) return {};
    escalated_ += count;
    timers_->again.begin();
    GPUTEXT_TRY(search_directly({failed_.data(), count}, begin, end, true));
    timers_->again.end();
    return {};
}

/// Scores what was found by the gates. `any_k`: see find_least_scores().
Status TermSearch::score(const TermGates& gates, bool any_k) {
    const ListsView view = lists_.view();
    timers_->score.begin();
    if (any_k) GPUTEXT_TRY(find_least_scores(gates, view, least_.data(), stream_));
    TermScoreJob scores{};
    scores.queries = queries_;
    scores.most_terms = most_terms_;
    scores.items = index_.items;
    scores.first_item = first_item_;
    scores.selection = gates.selection;
    scores.lists = view;
    scores.gates = gates_.data();
    scores.rescored = counters_.data() + 1;
    scores.found = counters_.data() + 2;
    if (any_k) {
        scores.least = least_.data();
        scores.bounded = bounded_;
        scores.light = light_queries_.view();
    }
    GPUTEXT_TRY(score_terms(scores, stream_));
    timers_->score.end();
    return {};
}

/// As score(), and keeps the nearest.
Status TermSearch::score_and_keep(const TermGates& gates, bool any_k) {
    GPUTEXT_TRY(score(gates, any_k));
    timers_->sort.begin();
    GPUTEXT_TRY(lists_.keep(gates.selection));
    timers_->sort.end();
    return execution_->checkpoint(0);
}

/// With gates that leave out nothing: few items at first, whose distances bound those of the
/// others.
Status TermSearch::search_directly(const QuerySelection& selection, std::uint32_t begin,
                                   std::uint32_t end, bool lists_are_empty) {
    std::uint32_t next = begin;
    std::uint32_t step = lists_are_empty ? std::max(lists_.shape().capacity, kTermTile) : end;
    while (next < end) {
        const std::uint32_t last = end - next > step + step / 2 ? next + step : end;
        GPUTEXT_TRY(search_range(selection, next, last));
        next = last;
        step = std::min(2 * step, 1u << 30);
    }
    return {};
}

Status TermSearch::search_range(const QuerySelection& selection, std::uint32_t begin,
                                std::uint32_t end) {
    const auto search = [&](const QuerySelection& some, std::uint32_t first, std::uint32_t last) {
        const TermGates gates = this->gates(some, gates_.data());
        GPUTEXT_TRY(set_term_gates(gates, lists_.view().limits, stream_));
        timers_->filter.begin();
        GPUTEXT_TRY(run_term_filter(job(some, first, last), work_ * some.count / queries_.rows.rows,
                                    execution_->stop(), stream_));
        timers_->filter.end();
        return score_and_keep(gates, false);
    };
    return fill_lists(lists_, selection, begin, end, taken_, stream_, search);
}

}  // namespace gputext::gpu
