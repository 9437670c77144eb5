#include "extension/planner/nearest_search.hpp"

extern "C" {
#include "fmgr.h"
#include "utils/memutils.h"
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "cpp/knn/added_neighbors.hpp"
#include "cpp/knn/keyed_knn.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/link/knn.hpp"
#include "cpp/link/nearest_strings.hpp"
#include "cpp/strings/nearest_strings.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/computation.hpp"
#include "extension/server/settings.hpp"
#include "extension/values/row_threads.hpp"

namespace gputext {
namespace {

/// What searches among items of all kinds have in common.
class NearestComputation : public Computation {
public:
    Neighbors answer;
    bool on_device = false;

    Status take(const DaemonEvent& event, Stop stop) final {
        on_device = true;
        return keep(std::get<KnnAnswer>(event).read(stop));
    }

protected:
    Status keep(Result<Neighbors> found) {
        if (!found.ok()) return found.status();
        answer = std::move(*found);
        return {};
    }
};

class NearestVectorsComputation final : public NearestComputation {
public:
    NearestVectorsComputation(NearestItems& items, const KnnParameters& parameters,
                              const Vectors& queries, const MatchKeys& matches, double pairs)
        : items_(items.vectors),
          parameters_(parameters),
          queries_(queries),
          matches_(matches),
          pairs_(pairs) {}

    JobSize size() const override {
        const Vectors items = items_.view();
        return {queries_.rows + items.rows,
                queries_.rows * queries_.dimensions * element_size(queries_.type) + items_.bytes(),
                matches_.none() ? knn_cpu_seconds(queries_, items, cpu_threads())
                                : keyed_knn_cpu_seconds(queries_, items, pairs_, cpu_threads()),
                0, items_.resident_bytes()};
    }
    Status compute(Execution& execution) override {
        return keep(keyed_knn(parameters_, queries_, items_.view(), matches_, {}, execution));
    }
    void prepare_for_device() override { items_.share(); }
    Status submit(DaemonConnection& connection, Stop stop) override {
        KnnRequest request;
        request.parameters = parameters_;
        request.queries = {queries_, -1, -1};
        request.items = items_.files();
        request.matches = matches_;
        request.limits.device_memory_limit = gpu_memory_limit();
        return connection.submit(request, stop);
    }

private:
    VectorRows& items_;
    KnnParameters parameters_;
    Vectors queries_;
    MatchKeys matches_;
    double pairs_;  // of equal keys
};

class NearestTextsComputation final : public NearestComputation {
public:
    NearestTextsComputation(const NearestItems& items, const NearestStringsParameters& parameters,
                            const Strings& queries, const MatchKeys& matches, double pairs)
        : items_(items.trigrams.view()),
          parameters_(parameters),
          queries_(queries),
          matches_(matches),
          pairs_(pairs) {}

    JobSize size() const override {
        const std::uint64_t symbols = queries_.begins.back() + items_.begins.back();
        JobSize size{queries_.size() + items_.size(), symbols * sizeof(std::uint32_t)};
        size.cpu_seconds =
            nearest_strings_cpu_seconds(parameters_.metric, pairs_, symbols, cpu_threads());
        size.device_seconds = nearest_strings_device_seconds(parameters_.metric, pairs_, symbols,
                                                             !matches_.none(), cpu_threads());
        return size;
    }
    Status compute(Execution& execution) override {
        return keep(nearest_strings(parameters_, queries_, items_, matches_, {}, execution));
    }
    void prepare_for_device() override {}
    Status submit(DaemonConnection& connection, Stop stop) override {
        NearestStringsRequest request;
        request.parameters = parameters_;
        request.queries = queries_;
        request.items = items_;
        request.matches = matches_;
        request.limits.device_memory_limit = gpu_memory_limit();
        return connection.submit(request, stop);
    }

private:
    Strings items_;
    NearestStringsParameters parameters_;
    Strings queries_;
    MatchKeys matches_;
    double pairs_;  // of equal keys
};

/// pgvector's dense types, as VectorType reads them.
struct StoredVector {
    int32 vl_len_;
    int16 dimensions;
    int16 unused;
    char elements[FLEXIBLE_ARRAY_MEMBER];
};

/// Calls the operator's function for items and queries, which it has in memory of the current
/// context. Nothing is to be destroyed. Functions raise errors.
class DistanceCall {
public:
    DistanceCall(const NearestPlan& plan, const VectorRows& items)
        : items_(items.view()), item_is_left_(plan.item_is_left) {
        if (items.added() != nullptr) added_ = items.added()->view();
        fmgr_info(plan.distance.function, &function_);
        bytes_ = items_.dimensions * element_size(items_.type);
        item_ = new_vector();
        query_ = new_vector();
    }

    void set_query(const std::uint8_t* elements) {
        std::memcpy(query_->elements, elements, bytes_);
    }
    double operator()(std::size_t item) {
        std::memcpy(item_->elements,
                    item < items_.rows ? items_.row_bytes(item)
                                       : added_.row_bytes(item - items_.rows),
                    bytes_);
        const Datum a = PointerGetDatum(item_), b = PointerGetDatum(query_);
        return DatumGetFloat8(
            FunctionCall2(&function_, item_is_left_ ? a : b, item_is_left_ ? b : a));
    }

private:
    StoredVector* new_vector() const {
        const std::size_t size = offsetof(StoredVector, elements) + bytes_;
        auto* const made = static_cast<StoredVector*>(palloc0(size));
        SET_VARSIZE(made, size);
        made->dimensions = static_cast<int16>(items_.dimensions);
        return made;
    }

    FmgrInfo function_;
    Vectors items_, added_{};
    bool item_is_left_;
    std::size_t bytes_ = 0;
    StoredVector* item_ = nullptr;
    StoredVector* query_ = nullptr;
};

/// What one search needs, in a memory context of its own.
struct Search {
    const NearestPlan& plan;
    NearestItems& items;
    std::size_t k;
    NearestBatch& batch;
    SearchCounts& counts;
    std::vector<std::uint32_t> pending;  // queries without an answer
    std::vector<std::uint8_t> elements;  // of these
    std::vector<std::uint32_t> keys;     // the same
    std::vector<NearestItem> ranked;

    Search(const NearestPlan& given, NearestItems& from, std::size_t wanted, NearestBatch& to,
           SearchCounts& counted)
        : plan(given), items(from), k(wanted), batch(to), counts(counted) {}

    RowsOfKey rows_of(std::size_t query) const {
        return items.rows_of(items.keyed() ? batch.keys[query] : kNoKey);
    }
    std::size_t row_bytes() const {
        return items.vectors.dimensions() * element_size(plan.distance.type.element);
    }
};

/// Begins the answer of all queries: each is to be searched.
void begin(Search& search) {
    attempt_or_raise([&] {
        search.batch.begins.assign(search.batch.queries, 0);
        search.batch.counts.assign(search.batch.queries, NearestBatch::kOrdinary);
        search.pending.resize(search.batch.queries);
        for (std::size_t q = 0; q < search.pending.size(); ++q)
            search.pending[q] = static_cast<std::uint32_t>(q);
    });
}

/// The elements of the pending queries: of all, or of some of them.
Vectors pending_queries(Search& search) {
    const std::size_t bytes = search.row_bytes();
    const std::uint8_t* elements = search.batch.elements.data();
    if (search.pending.size() < search.batch.queries) {
        attempt_or_raise([&] { search.elements.resize(search.pending.size() * bytes); });
        for (std::size_t i = 0; i < search.pending.size(); ++i)
            std::memcpy(search.elements.data() + i * bytes, elements + search.pending[i] * bytes,
                        bytes);
        elements = search.elements.data();
    }
    return {search.plan.distance.type.element,
            search.pending.size(),
            search.items.vectors.dimensions(),
            elements,
            {},
            {}};
}

/// The keys of the pending queries and of the items. Sets how many pairs are equal.
MatchKeys pending_matches(Search& search, double& pairs) {
    pairs = 0;
    if (!search.items.keyed()) return {};
    attempt_or_raise([&] {
        search.keys.clear();
        for (const std::uint32_t query : search.pending)
            search.keys.push_back(search.batch.keys[query]);
    });
    for (const std::uint32_t key : search.keys)
        pairs += static_cast<double>(search.items.rows_of(key).items);
    return {search.keys, search.items.keys.items()};
}

/// Puts the ranked items into the answer of the query.
void answer(Search& search, std::size_t query) {
    NearestBatch& batch = search.batch;
    const std::size_t count = std::min(search.k, search.ranked.size());
    attempt_or_raise([&] {
        batch.begins[query] = batch.found.size();
        batch.counts[query] = static_cast<std::int64_t>(count);
        batch.found.insert(batch.found.end(), search.ranked.begin(),
                           search.ranked.begin() + static_cast<std::ptrdiff_t>(count));
    });
}

/// Whether fewer than k items have a distance that is a number, and others come behind them: items
/// without a direction, and rows without a vector. `rows` are those that the query is compared
/// with.
bool lacks_items(const Search& search, const RowsOfKey& rows) {
    return search.ranked.size() < search.k && (search.ranked.size() < rows.items || rows.nulls > 0);
}

enum class Rank { right, ordinary, too_few };

/// Ranks the candidates by the operator. `beyond` is the exact distance that items left out have at
/// least; infinity where none is.
Rank rank(Search& search, DistanceCall& call, const Vectors& queries, std::size_t row,
          double beyond) {
    call.set_query(reinterpret_cast<const std::uint8_t*>(queries.row_bytes(row)));
    for (NearestItem& candidate : search.ranked) {
        candidate.distance = call(candidate.item);
        if (!std::isfinite(candidate.distance)) return Rank::ordinary;
    }
    search.counts.rescored += search.ranked.size();
    std::sort(search.ranked.begin(), search.ranked.end(),
              [](const NearestItem& a, const NearestItem& b) {
                  return a.distance != b.distance ? a.distance < b.distance : a.item < b.item;
              });
    const double square = norm_square(queries, row);
    const std::optional<double> least =
        least_in_single_precision(search.plan.distance.metric, queries.dimensions,
                                  std::isinf(beyond) ? 0.0 : beyond, square, search.items.norms());
    if (!least) return Rank::ordinary;
    if (std::isinf(beyond) || search.ranked.size() < search.k) return Rank::right;
    return search.ranked[search.k - 1].distance < *least ? Rank::right : Rank::too_few;
}

void rank_as_found(Search& search, const Neighbors& found, std::size_t row) {
    attempt_or_raise([&] {
        search.ranked.clear();
        for (std::uint64_t i = found.begins[row]; i < found.begins[row + 1]; ++i)
            search.ranked.push_back({found.items[i], found.distances[i]});
    });
}

/// Answers what one search has found. The queries that need a wider one stay pending.
void take_answers(Search& search, const Vectors& queries, const Neighbors& found,
                  std::size_t wanted) {
    std::optional<DistanceCall> call;
    if (!search.plan.distance.exact) call.emplace(search.plan, search.items.vectors);
    std::size_t pending = 0;
    for (std::size_t row = 0; row < search.pending.size(); ++row) {
        CHECK_FOR_INTERRUPTS();
        const std::uint32_t query = search.pending[row];
        const std::uint64_t first = found.begins[row], end = found.begins[row + 1];
        rank_as_found(search, found, row);
        const RowsOfKey rows = search.rows_of(query);
        if (lacks_items(search, rows)) continue;
        const bool all = end - first < wanted || end - first == rows.items;
        const Rank ranks =
            call ? rank(search, *call, queries, row, all ? INFINITY : found.distances[end - 1])
                 : Rank::right;
        if (ranks == Rank::right) answer(search, query);
        if (ranks == Rank::too_few) search.pending[pending++] = query;
    }
    search.counts.widened += pending;
    search.pending.resize(pending);
}

/// Leaves items out that were removed, and takes in those that were added.
void take_changes(Search& search, KnnParameters parameters, const Vectors& queries,
                  std::size_t wanted, Neighbors& answer) {
    const VectorRows& items = search.items.vectors;
    const std::span<const std::uint32_t> removed = items.removed();
    const VectorRows* const added = items.added();
    if (removed.empty() && added == nullptr) return;
    keep_nearest(
        wanted,
        [&](std::size_t, std::uint32_t item) {
            return !std::binary_search(removed.begin(), removed.end(), item);
        },
        answer);
    if (added == nullptr) return;
    parameters.k = std::min(wanted, added->size());
    run_on_rows(queries.rows * added->size() * added->dimensions(),
                [&](Execution& execution) -> Status {
                    const Result<Neighbors> found =
                        knn(parameters, queries, added->view(), {}, execution);
                    if (!found.ok()) return found.status();
                    return merge_added(*found, items.rows_before_added(), items.size(), wanted,
                                       execution.stop(), answer);
                });
}

/// Each search is for so many times more items than the one before.
constexpr std::size_t kWidening = 8;

void search_pending(Search& search, std::size_t wanted, MemoryContext context) {
    TimeSplit times;
    KnnParameters parameters;
    const std::span<const std::uint32_t> removed = search.items.vectors.removed();
    parameters.k = std::min(wanted + removed.size(), search.items.vectors.size());
    parameters.metric = search.plan.distance.metric;
    parameters.memory_limit = host_memory_limit();
    parameters.answer_limit = host_memory_limit();
    const Vectors queries = pending_queries(search);
    double pairs = 0;
    const MatchKeys matches = pending_matches(search, pairs);
    auto* const computation = make_owned<NearestVectorsComputation>(
        context, search.items, parameters, queries, matches, pairs);
    run_computation(*computation, times, context);
    ++(computation->on_device ? search.counts.on_device : search.counts.on_cpu);
    take_changes(search, parameters, queries, wanted, computation->answer);
    take_answers(search, queries, computation->answer, wanted);
}

/// Texts: one search suffices, whose neighbors are ranked by the operator's own distances.
void search_texts(Search& search, MemoryContext context) {
    TimeSplit times;
    NearestStringsParameters parameters;
    parameters.metric = StringMetric::trigram;
    parameters.k = search.k;
    parameters.answer_limit = host_memory_limit();
    double pairs = 0;
    const MatchKeys matches = pending_matches(search, pairs);
    if (matches.none())
        pairs = static_cast<double>(search.batch.queries) *
                static_cast<double>(search.items.vectors.size());
    auto* const computation = make_owned<NearestTextsComputation>(
        context, search.items, parameters, search.batch.trigrams.view(), matches, pairs);
    run_computation(*computation, times, context);
    ++(computation->on_device ? search.counts.on_device : search.counts.on_cpu);
    const Neighbors& found = computation->answer;
    for (std::size_t query = 0; query < search.batch.queries; ++query) {
        CHECK_FOR_INTERRUPTS();
        rank_as_found(search, found, query);
        if (!lacks_items(search, search.rows_of(query))) answer(search, query);
    }
    search.pending.clear();
}

}  // namespace

std::size_t searched_for(const NearestPlan& plan, std::size_t k) {
    return plan.distance.exact ? k : k + std::max<std::size_t>(8, k / 8);
}

void search_nearest(const NearestPlan& plan, NearestItems& items, std::size_t k,
                    NearestBatch& batch, SearchCounts& counts) {
    const MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext nearest", ALLOCSET_DEFAULT_SIZES);
    const MemoryContext before = MemoryContextSwitchTo(context);
    Search& search = *make_owned<Search>(context, plan, items, k, batch, counts);
    begin(search);
    std::size_t wanted = searched_for(plan, k);
    while (!search.pending.empty()) {
        const MemoryContext round =
            AllocSetContextCreate(context, "gputext job", ALLOCSET_DEFAULT_SIZES);
        MemoryContextSwitchTo(round);
        begin_activity("nearest", round);
        if (plan.distance.trigrams)
            search_texts(search, round);
        else
            search_pending(search, std::min(wanted, items.size()), round);
        MemoryContextSwitchTo(context);
        MemoryContextDelete(round);
        wanted *= kWidening;
    }
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
}

}  // namespace gputext
