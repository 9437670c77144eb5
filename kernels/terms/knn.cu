#include "kernels/terms/knn.hpp"

#include <algorithm>

#include "kernels/base/device_work.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/knn/neighbor_lists.hpp"
#include "kernels/terms/detail/search.hpp"

namespace gputext::gpu {
namespace {

constexpr std::size_t kMostQueries = 4096;  // of a tile
constexpr std::size_t kSmallBuffers = 1 << 18;

std::size_t most_stored(const Vectors& rows) {
    std::size_t most = 0;
    for (std::size_t row = 0; row < rows.rows; ++row) most = std::max(most, rows.stored(row));
    return most;
}

std::size_t stored(const Vectors& rows, std::size_t begin, std::size_t end) {
    return rows.row_begins[end] - rows.row_begins[begin];
}

/// How many bytes queries and items take, and how many of them are worked on at a time.
class Plan {
public:
    Plan(const TermKnnParameters& parameters, const Vectors& queries, const Vectors& items)
        : shape(TermSearch::shape_of(parameters.k, parameters.radius, items.rows)),
          queries_(queries),
          items_(items),
          fixed_(items.dimensions * sizeof(double) + kSmallBuffers),
          per_query_(TermQueriesMemory::bytes_per_row +
                     TermSearch::bytes_per_query(shape, items.rows)) {}

    std::size_t query_bytes(std::size_t begin, std::size_t end) const {
        return (end - begin) * per_query_ +
               stored(queries_, begin, end) * TermQueriesMemory::bytes_per_element;
    }
    std::size_t item_bytes(std::size_t begin, std::size_t end) const {
        const std::size_t elements = stored(items_, begin, end);
        return (end - begin) * TermRowsMemory::bytes_per_row +
               elements * TermRowsMemory::bytes_per_element +
               TermIndexMemory::bytes((end - begin + kTermTile - 1) / kTermTile, items_.dimensions,
                                      elements);
    }
    std::size_t least_query() const {
        std::size_t most = 0;
        for (std::size_t q = 0; q < queries_.rows; ++q)
            most = std::max(most, query_bytes(q, q + 1));
        return most;
    }
    std::size_t least_items() const {
        std::size_t most = 0;
        for (std::size_t i = 0; i < items_.rows; i += kTermTile)
            most = std::max(most, item_bytes(i, std::min<std::size_t>(i + kTermTile, items_.rows)));
        return most;
    }
    TermKnnBytes bytes() const {
        return {fixed_ + least_query() + least_items(),
                fixed_ + query_bytes(0, queries_.rows) + item_bytes(0, items_.rows)};
    }

    /// Divides memory of at least bytes().least. Items that stay are copied and indexed once; else
    /// each tile of queries has it done again.
    void use(std::size_t memory) {
        const std::size_t available = memory - fixed_;
        const std::size_t all_items = item_bytes(0, items_.rows);
        const std::size_t tile =
            std::max(query_bytes(0, std::min(queries_.rows, kMostQueries)), least_query());
        for_items_ = all_items;
        if (available < all_items || available - all_items < tile)
            for_items_ =
                std::max(least_items(), available - std::max(available / 2, least_query()));
        for_queries_ = available - for_items_;
        // What nothing else needs.
        const std::size_t scores = TermSearch::bytes_for_scores(shape, queries_.rows, items_.rows);
        const std::size_t taken = all_items + tile;
        keep_scores = scores > 0 && for_items_ == all_items && available >= taken + scores;
        if (keep_scores) for_queries_ = tile;
        for_dense_ = for_items_ == all_items && available > taken ? available - taken : 0;
        if (for_dense_ > 0 && !keep_scores) for_queries_ = tile;
    }

    /// Plan of the dense terms: queries in all and at a time, and their memory.
    DenseTermsMemory::Plan dense(std::size_t tile, std::size_t elements) const {
        return {queries_.rows, tile, elements, keep_scores ? 0 : for_dense_};
    }

    /// Where a tile of queries from `begin` on ends.
    std::size_t end_of_queries(std::size_t begin) const {
        std::size_t end = begin + 1;
        while (end < queries_.rows && end - begin < kMostQueries &&
               query_bytes(begin, end + 1) <= for_queries_)
            ++end;
        return end;
    }
    /// Where a part of the items from `begin` on ends.
    std::size_t end_of_items(std::size_t begin) const {
        std::size_t end = begin;
        for (;;) {
            const std::size_t next = std::min<std::size_t>(end + kTermTile, items_.rows);
            const bool fits = item_bytes(begin, next) <= for_items_ &&
                              stored(items_, begin, next) <= TermIndexMemory::kMostPostings;
            if (end > begin && (next == end || !fits)) return end;
            end = next;
        }
    }

    NeighborLists::Shape shape;
    bool keep_scores = false;

private:
    const Vectors& queries_;
    const Vectors& items_;
    std::size_t fixed_;  // with the factors
    std::size_t per_query_;
    std::size_t for_queries_ = 0, for_items_ = 0, for_dense_ = 0;
};

/// The most rows and elements of a division, and of how many parts it is.
struct Largest {
    std::size_t rows = 0, elements = 0, parts = 0;

    template <class End>
    Largest(const Vectors& vectors, End&& end_of) {
        for (std::size_t begin = 0; begin < vectors.rows; ++parts) {
            const std::size_t end = end_of(begin);
            rows = std::max(rows, end - begin);
            elements = std::max(elements, stored(vectors, begin, end));
            begin = end;
        }
    }
};

/// One search, its memory, and the answer so far.
class TermKnn {
public:
    TermKnn(const TermKnnParameters& parameters, std::span<const double> factors,
            const Vectors& queries, const Vectors& items, const RowKeys& keys, const Plan& plan,
            const DeviceWork& work, UploadRing& ring, Execution& execution, bool measure)
        : parameters_(parameters),
          factors_(factors),
          queries_(queries),
          items_(items),
          keys_(keys),
          plan_(plan),
          stream_(work.stream),
          ring_(ring),
          execution_(execution),
          index_timer_(measure, work.stream),
          timers_(measure, work.stream),
          budget_(parameters.answer_limit) {}

    Status run(Neighbors& answer, TermKnnCounts& counts) {
        answer.begins.assign(1, 0);
        const Largest tiles(queries_, [&](std::size_t q) { return plan_.end_of_queries(q); });
        const Largest parts(items_, [&](std::size_t i) { return plan_.end_of_items(i); });
        GPUTEXT_TRY(allocate(tiles, parts));
        execution_.begin_phase("finding neighbors", tiles.parts * parts.parts);
        for (std::size_t begin = 0; begin < queries_.rows;) {
            const std::size_t end = plan_.end_of_queries(begin);
            GPUTEXT_TRY(search_tile(begin, end, answer));
            begin = end;
        }
        GPUTEXT_TRY(search_.counts(answer.rescored, counts.found));
        answer.escalated = search_.escalated();
        counts.index_ms = index_timer_.milliseconds();
        counts.sample_ms = timers_.sample.milliseconds();
        counts.filter_ms = timers_.filter.milliseconds();
        counts.score_ms = timers_.score.milliseconds();
        counts.sort_ms = timers_.sort.milliseconds();
        counts.again_ms = timers_.again.milliseconds();
        counts.rescored = answer.rescored;
        counts.escalated = answer.escalated;
        return {};
    }

private:
    Status allocate(const Largest& tiles, const Largest& parts) {
        GPUTEXT_TRY(factors_on_device_.upload(factors_, stream_));
        const std::size_t most = std::max(most_stored(queries_), most_stored(items_));
        GPUTEXT_TRY(tile_.allocate(tiles.rows, tiles.elements, TermQueriesMemory::scale_for(most),
                                   stream_));
        GPUTEXT_TRY(part_.allocate(parts.rows, parts.elements, stream_));
        GPUTEXT_TRY(index_.allocate((parts.rows + kTermTile - 1) / kTermTile, items_.dimensions,
                                    parts.elements, stream_));
        dense_plan_ = plan_.dense(tiles.rows, tiles.elements);
        may_guess_ = plan_.shape.is_short() && !plan_.shape.open && dense_plan_.bytes > 0;
        return search_.allocate(
            plan_.shape, static_cast<std::uint32_t>(tiles.rows), items_.rows, plan_.keep_scores,
            [this] { return pieces_.take(search_.lists(), tile_.view().rows.rows, budget_); },
            execution_, timers_, stream_);
    }

    Status load_items(std::size_t begin, std::size_t end) {
        if (loaded_ && loaded_begin_ == begin) return {};
        loaded_ = true;
        loaded_begin_ = begin;
        GPUTEXT_TRY(part_.load(items_, begin, end, keys_.items, factors_on_device_.data(), ring_,
                               execution_, parameters_.metric));
        index_timer_.begin();
        GPUTEXT_TRY(index_.build(part_.view()));
        if (may_guess_) GPUTEXT_TRY(look_at_frequent_terms());
        index_timer_.end();
        return {};
    }

    Status look_at_frequent_terms() {
        constexpr std::size_t kManyQueries = 64;
        GPUTEXT_TRY(dense_.build(index_.view(), dense_plan_, stream_));
        bounded_.clear();
        const std::size_t bytes = BoundedTermsMemory::bytes(index_.view()) +
                                  dense_plan_.tile * LightQueriesMemory::bytes_per_row +
                                  dense_plan_.tile_elements * LightQueriesMemory::bytes_per_element;
        if (dense_.view().padded > 0 || dense_plan_.queries < kManyQueries ||
            bytes > dense_plan_.bytes)
            return {};
        return bounded_.build(index_.view(), stream_);
    }

    Status search_tile(std::size_t begin, std::size_t end, Neighbors& answer) {
        GPUTEXT_TRY(tile_.load(queries_, begin, end, keys_.queries, factors_on_device_.data(),
                               ring_, execution_));
        std::size_t most_terms = 0;
        for (std::size_t q = begin; q < end; ++q)
            most_terms = std::max(most_terms, queries_.stored(q));
        search_.begin(tile_.view(), static_cast<std::uint32_t>(most_terms), parameters_.radius);
        for (std::size_t first = 0; first < items_.rows;) {
            const std::size_t last = plan_.end_of_items(first);
            GPUTEXT_TRY(load_items(first, last));
            GPUTEXT_TRY(search_.search(index_.view(), dense_.view(), bounded_.view(),
                                       static_cast<std::uint32_t>(first)));
            GPUTEXT_TRY(execution_.checkpoint());
            first = last;
        }
        if (plan_.shape.open) return pieces_.append_to(answer, end - begin, budget_, execution_);
        return append_kept(search_.lists(), static_cast<std::uint32_t>(end - begin), budget_,
                           answer);
    }

    const TermKnnParameters& parameters_;
    std::span<const double> factors_;
    const Vectors& queries_;
    const Vectors& items_;
    const RowKeys& keys_;
    const Plan& plan_;
    cudaStream_t stream_;
    UploadRing& ring_;
    Execution& execution_;
    StreamTimer index_timer_;
    TermTimers timers_;

    DeviceBuffer<double> factors_on_device_;
    TermQueriesMemory tile_;
    TermRowsMemory part_;
    TermIndexMemory index_;
    DenseTermsMemory dense_;
    BoundedTermsMemory bounded_;
    DenseTermsMemory::Plan dense_plan_{};
    bool may_guess_ = false;
    TermSearch search_;
    MemoryBudget budget_;
    DownloadedLists pieces_;
    bool loaded_ = false;
    std::size_t loaded_begin_ = 0;
};

Status run(const TermKnnParameters& parameters, std::span<const double> factors,
           const Vectors& queries, const Vectors& items, const RowKeys& keys,
           const DeviceWork& work, UploadRing& ring, Execution& execution, Neighbors& answer,
           TermKnnCounts& counts, bool measure) {
    GPUTEXT_TRY(check_term_search(parameters, factors, queries, items, keys));
    if (auto largest = largest_magnitude(queries, "query", execution); !largest.ok())
        return largest.status();
    if (auto largest = largest_magnitude(items, "item", execution); !largest.ok())
        return largest.status();
    answer.begins.assign(queries.rows + 1, 0);
    if (queries.rows == 0 || items.rows == 0) return {};
    Plan plan(parameters, queries, items);
    const std::size_t least = plan.bytes().least;
    if (work.bytes < least) return too_little_memory("finding neighbors takes", least, work.bytes);
    plan.use(work.bytes);
    TermKnn knn(parameters, factors, queries, items, keys, plan, work, ring, execution, measure);
    return knn.run(answer, counts);
}

}  // namespace

TermKnnBytes term_knn_bytes(const TermKnnParameters& parameters, const Vectors& queries,
                            const Vectors& items) {
    return Plan(parameters, queries, items).bytes();
}

Result<Neighbors> term_knn(const TermKnnParameters& parameters, std::span<const double> factors,
                            const Vectors& queries, const Vectors& items, const RowKeys& keys,
                            const DeviceWork& work, UploadRing& ring, Execution& execution,
                            TermKnnCounts* counts) {
    Neighbors answer;
    TermKnnCounts uncounted;
    const Status status = run(parameters, factors, queries, items, keys, work, ring, execution,
                              answer, counts != nullptr ? *counts : uncounted, counts != nullptr);
    GPUTEXT_TRY(finish_work(status, work.stream, "finding neighbors"));
    return answer;
}

}  // namespace gputext::gpu
