#include "kernels/knn/knn.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <new>
#include <numeric>

#include "cpp/base/execution.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/knn/detail/neighbor_search.hpp"

namespace gputext::gpu {

namespace {

constexpr std::uint32_t kOpenCapacity = NeighborLists::kShort;
constexpr std::size_t kLeastQueries = 64;  // of a tile, where there are as many
constexpr std::size_t kLeastItems = 256;   // of a batch
constexpr std::size_t kSmallBuffers = 1 << 16;

Status check(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
             const RowKeys& keys) {
    if (queries.sparse() || items.sparse())
        return {ErrorCode::invalid_argument, "sparse vectors are not compared on a GPU"};
    return check_search(parameters, queries, items, keys);
}

bool keeps_all(const KnnParameters& parameters, std::size_t items) {
    return parameters.k >= items && parameters.radius < std::numeric_limits<double>::infinity();
}

constexpr NeighborLists::Shape kOpenShape = {kOpenCapacity, kOpenCapacity, false, true};

/// Lists of the k nearest; open ones where every item within the radius is wanted.
NeighborLists::Shape shape_of(const KnnParameters& parameters, std::size_t items) {
    if (keeps_all(parameters, items)) return kOpenShape;
    const std::size_t k = std::min(parameters.k, items);
    const auto short_k = static_cast<std::uint32_t>(k);
    if (k <= kMostShortK) return short_lists(short_k, items);
    const std::size_t capacity = std::min(items, k + std::max<std::size_t>(k / 2, 4096));
    return {short_k,
            static_cast<std::uint32_t>(std::max<std::size_t>(capacity, NeighborLists::kShort + 1)),
            false, false};
}

/// Where the items are.
struct ItemsPlace {
    const std::uint8_t* rows = nullptr;  // on the device already; or null
    ItemCache::Key key;                  // of a range, where they are
    const Fp16ItemSet* made = nullptr;   // what was made of them
};

/// How many bytes one query and one item take, and how many of them are worked on at a time.
struct Plan {
    NeighborLists::Shape shape;
    std::size_t fixed;  // with the keys of all items
    std::size_t per_query;
    std::size_t per_item;
    std::size_t query_tile = 0;
    std::size_t item_batch = 0;
    bool fp16 = false;  // whether the filter in half precision is used

    Plan(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
         const ItemsPlace& place = {})
        : shape(shape_of(parameters, items.rows)),
          fixed(items.rows * sizeof(std::uint32_t) + kSmallBuffers),
          per_query(queries.dimensions * element_size(queries.type) +
                    DeviceQueries::bytes_per_row(queries.dimensions) +
                    NeighborLists::bytes_per_query(shape) +
                    (parameters.include_ties ? NeighborLists::bytes_per_query(kOpenShape) : 0) +
                    34 * sizeof(std::uint32_t)),  // failed queries, at every depth
          per_item(std::max<std::size_t>(
              1, (place.rows != nullptr ? 0 : items.dimensions * element_size(items.type)) +
                     (place.made != nullptr ? 0 : sizeof(double)))) {}

    static std::size_t least_queries(const Vectors& queries) {
        return std::clamp<std::size_t>(queries.rows, 1, kLeastQueries);
    }
    static std::size_t least_items(const Vectors& items) {
        return std::clamp<std::size_t>(items.rows, 1, kLeastItems);
    }

    KnnBytes bytes(const Vectors& queries, const Vectors& items) const {
        return {fixed + least_queries(queries) * per_query + least_items(items) * per_item,
                fixed + queries.rows * per_query + items.rows * per_item};
    }

    /// Where half precision can help: takes more memory for the same number of rows.
    void use_fp16(std::size_t memory, const Vectors& queries, const Vectors& items,
                  const ItemsPlace& place) {
        const Fp16Search::Bytes more = Fp16Search::bytes(items, place.made != nullptr);
        Plan with = *this;
        with.fp16 = true;
        with.shape.scored = !shape.open;
        with.fixed += more.samples;
        with.per_item += more.per_item;
        with.per_query += more.per_query + NeighborLists::bytes_per_query(with.shape) -
                          NeighborLists::bytes_per_query(shape);
        const std::size_t least =
            with.fixed + std::min<std::size_t>(queries.rows, kGroupQueries) * with.per_query +
            Fp16Search::kLeastItems * with.per_item;
        if (memory >= least) *this = with;
    }

    /// Requires bytes().least.
    void use(std::size_t memory, const Vectors& queries, const Vectors& items) {
        const std::size_t available = memory - fixed;
        const std::size_t all_items = items.rows * per_item;
        const std::size_t tile = std::min<std::size_t>(queries.rows, 4096);
        // Items that stay are copied once; else each tile of queries has them copied again.
        if (available >= all_items && available - all_items >= tile * per_query) {
            item_batch = items.rows;
        } else {
            const std::size_t for_queries =
                std::max(available / 2, least_queries(queries) * per_query);
            const std::size_t some = std::min(for_queries / per_query, queries.rows);
            item_batch = std::min(items.rows, (available - some * per_query) / per_item);
        }
        query_tile = std::min(queries.rows, (available - item_batch * per_item) / per_query);
    }
};

/// Rows that kernels read in vectors of 16 bytes begin at a multiple of that.
constexpr std::uintptr_t kAlignment = 16;

/// Finds the items on the device, and what was made of them there. A copy that is made now leaves
/// the search the memory that it needs.
Status find_items(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
                  UploadRing& ring, ItemCache* cache, Execution& execution, ItemsPlace& place,
                  std::size_t& memory) {
    const auto* data = reinterpret_cast<const std::uint8_t*>(items.row_bytes(0));
    const std::size_t least = Plan(parameters, queries, items).bytes(queries, items).least;
    const auto found =
        ring.resident({data, items.rows * items.dimensions * element_size(items.type)},
                      memory - std::min(memory, least), execution);
    if (!found.ok()) return found.status();
    memory -= std::min<std::size_t>(memory, found->copied);
    if (found->data == nullptr || reinterpret_cast<std::uintptr_t>(found->data) % kAlignment != 0)
        return {};
    place.rows = found->data;
    if (cache == nullptr) return {};
    place.key = {found->range,     found->begin, items.rows,
                 items.dimensions, items.type,   parameters.metric};
    place.made = cache->find(place.key);
    return {};
}

/// One search, its memory, and the answer so far.
class Knn {
public:
    Knn(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
        const RowKeys& keys, const Plan& plan, const ItemsPlace& place,
        const Fp16FilterDevice& device, const DeviceWork& work, UploadRing& ring,
        Execution& execution, bool measure)
        : parameters_(parameters),
          queries_(queries),
          items_(items),
          keys_(keys),
          plan_(plan),
          place_(place),
          device_(device),
          stream_(work.stream),
          ring_(ring),
          execution_(execution),
          prepare_timer_(measure, work.stream),
          search_timer_(measure, work.stream),
          budget_(parameters.answer_limit) {}

    Status run(Neighbors& answer, KnnCounts& counts) {
        answer.begins.assign(1, 0);
        GPUTEXT_TRY(allocate());
        const std::size_t tiles = (queries_.rows + plan_.query_tile - 1) / plan_.query_tile;
        const std::size_t batches = (items_.rows + plan_.item_batch - 1) / plan_.item_batch;
        execution_.begin_phase("finding neighbors", tiles * batches);
        for (std::size_t begin = 0; begin < queries_.rows; begin += plan_.query_tile)
            GPUTEXT_TRY(
                search_tile(begin, std::min(plan_.query_tile, queries_.rows - begin), answer));
        unsigned long long rescored = 0;
        GPUTEXT_TRY(download_value(rescored_.data(), rescored, stream_, "counting distances"));
        answer.rescored = rescored;
        answer.escalated = escalated_;
        counts = {prepare_timer_.milliseconds(), search_timer_.milliseconds(), escalated_,
                  rescored};
        return {};
    }

    /// What was made of all items, for other searches; none of their rows where that was not all.
    Fp16ItemSet take_items() {
        if (place_.made != nullptr || !plan_.fp16 || plan_.item_batch < items_.rows) return {};
        Fp16ItemSet items = fp16_.take_items();
        items.squares = std::move(item_squares_);
        return items;
    }

private:
    Status allocate() {
        const auto tile = static_cast<std::uint32_t>(plan_.query_tile);
        GPUTEXT_TRY(event_.create());
        GPUTEXT_TRY(lists_.allocate(plan_.shape, tile, stream_));
        if (parameters_.include_ties && !plan_.shape.open)
            GPUTEXT_TRY(tied_.allocate(kOpenShape, tile, stream_));
        GPUTEXT_TRY(raw_queries_.allocate(tile * queries_.dimensions * element_size(queries_.type),
                                          stream_));
        GPUTEXT_TRY(query_elements_.allocate(tile * queries_.dimensions, stream_));
        GPUTEXT_TRY(query_squares_.allocate(tile, stream_));
        if (place_.rows == nullptr)
            GPUTEXT_TRY(item_elements_.allocate(
                plan_.item_batch * items_.dimensions * element_size(items_.type), stream_));
        if (place_.made == nullptr) GPUTEXT_TRY(item_squares_.allocate(plan_.item_batch, stream_));
        if (!keys_.items.empty()) {
            GPUTEXT_TRY(query_keys_.allocate(tile, stream_));
            GPUTEXT_TRY(item_keys_.upload(keys_.items, stream_));
        }
        if (plan_.fp16) {
            GPUTEXT_TRY(fp16_.prepare(parameters_.metric, items_, device_, place_.made, stream_));
            GPUTEXT_TRY(fp16_.allocate(plan_.query_tile, plan_.item_batch));
        }
        GPUTEXT_TRY(rescored_.allocate(1, stream_));
        return cuda_status(
            cudaMemsetAsync(rescored_.data(), 0, sizeof(unsigned long long), stream_),
            "clearing a count");
    }

    /// Rows of the host's vectors, after what is on the stream by now.
    Status upload(const Vectors& from, std::size_t begin, std::size_t rows,
                  DeviceBuffer<std::uint8_t>& to) {
        const std::size_t bytes = rows * from.dimensions * element_size(from.type);
        if (bytes == 0) return {};
        GPUTEXT_TRY(event_.hold(ring_.stream(), stream_));
        const auto* data = reinterpret_cast<const std::uint8_t*>(from.row_bytes(begin));
        GPUTEXT_TRY(ring_.copy(to.data(), {data, bytes}, execution_));
        return event_.hold(stream_, ring_.stream());
    }

    static DeviceRows rows_of(const Vectors& vectors, const std::uint8_t* elements,
                              std::size_t rows) {
        return {vectors.type, elements, static_cast<std::uint32_t>(rows),
                static_cast<std::uint32_t>(vectors.dimensions)};
    }

    Status load_queries(std::size_t begin, std::size_t rows) {
        GPUTEXT_TRY(upload(queries_, begin, rows, raw_queries_));
        if (!keys_.queries.empty())
            GPUTEXT_TRY(query_keys_.upload(keys_.queries.subspan(begin, rows), stream_));
        tile_ = {static_cast<std::uint32_t>(rows), static_cast<std::uint32_t>(queries_.dimensions),
                 query_elements_.data(), query_squares_.data(), query_keys_.data()};
        prepare_timer_.begin();
        GPUTEXT_TRY(prepare_queries(parameters_.metric,
                                    rows_of(queries_, raw_queries_.data(), rows),
                                    query_elements_.data(), query_squares_.data(), stream_));
        if (plan_.fp16) GPUTEXT_TRY(fp16_.load_queries(tile_));
        prepare_timer_.end();
        return {};
    }

    Status load_items(std::size_t begin, std::size_t rows) {
        if (loaded_ && loaded_begin_ == begin) return {};
        loaded_ = true;
        loaded_begin_ = begin;
        if (place_.rows == nullptr) {
            GPUTEXT_TRY(upload(items_, begin, rows, item_elements_));
            batch_ = rows_of(items_, item_elements_.data(), rows);
        } else {
            // The copy may be under way.
            GPUTEXT_TRY(event_.hold(stream_, ring_.stream()));
            const std::size_t skipped = begin * items_.dimensions * element_size(items_.type);
            batch_ = rows_of(items_, place_.rows + skipped, rows);
        }
        prepare_timer_.begin();
        if (place_.made == nullptr) GPUTEXT_TRY(row_squares(batch_, item_squares_.data(), stream_));
        if (plan_.fp16) GPUTEXT_TRY(fp16_.load_items(batch_, static_cast<std::uint32_t>(begin)));
        prepare_timer_.end();
        return {};
    }

    Status search_tile(std::size_t begin, std::size_t rows, Neighbors& answer) {
        const auto count = static_cast<std::uint32_t>(rows);
        GPUTEXT_TRY(load_queries(begin, rows));
        GPUTEXT_TRY(lists_.reset(count, parameters_.radius));
        GPUTEXT_TRY(search_items(lists_));
        if (plan_.shape.open) return pieces_.append_to(answer, rows, budget_, execution_);
        if (!parameters_.include_ties) return append_kept(lists_, count, budget_, answer);
        GPUTEXT_TRY(tied_.reset(count, lists_));
        GPUTEXT_TRY(search_items(tied_));
        return pieces_.append_to(answer, rows, budget_, execution_);
    }

    Status search_items(NeighborLists& lists) {
        NeighborSearch search(
            lists, item_keys_.data(), rescored_.data(), [&] { return take(lists); }, execution_,
            stream_);
        for (std::size_t begin = 0; begin < items_.rows; begin += plan_.item_batch) {
            const std::size_t rows = std::min(plan_.item_batch, items_.rows - begin);
            GPUTEXT_TRY(load_items(begin, rows));
            const auto first = static_cast<std::uint32_t>(begin);
            const DirectFilterInput input{parameters_.metric, tile_, batch_, first,
                                          place_.made != nullptr
                                              ? place_.made->squares.data() + begin
                                              : item_squares_.data()};
            const auto end = first + static_cast<std::uint32_t>(rows);
            GPUTEXT_TRY(search_batch(search, input, end, begin == 0, lists.shape().open));
            GPUTEXT_TRY(execution_.checkpoint());
        }
        return {};
    }

    Status search_batch(NeighborSearch& search, const DirectFilterInput& input, std::uint32_t end,
                        bool is_first, bool open) {
        const bool small = is_first && end - input.first_item < Fp16Search::kLeastItems;
        if (!plan_.fp16 || (small && !open)) {
            search_timer_.begin();
            GPUTEXT_TRY(search.search_directly(input, {nullptr, tile_.rows}, input.first_item, end,
                                               is_first && !open));
            search_timer_.end();
            return {};
        }
        return search.search(input, fp16_, input.first_item, end, is_first, search_timer_,
                             escalated_);
    }

    /// Takes what open lists hold.
    Status take(NeighborLists& lists) { return pieces_.take(lists, tile_.rows, budget_); }

    const KnnParameters& parameters_;
    const Vectors& queries_;
    const Vectors& items_;
    const RowKeys& keys_;
    const Plan& plan_;
    const ItemsPlace& place_;
    const Fp16FilterDevice& device_;
    cudaStream_t stream_;
    UploadRing& ring_;
    Execution& execution_;
    StreamTimer prepare_timer_, search_timer_;

    StreamEvent event_;
    NeighborLists lists_, tied_;
    Fp16Search fp16_;
    DeviceBuffer<std::uint8_t> raw_queries_, item_elements_;
    DeviceBuffer<double> query_elements_, query_squares_, item_squares_;
    DeviceBuffer<std::uint32_t> query_keys_, item_keys_;
    DeviceBuffer<unsigned long long> rescored_;
    DeviceQueries tile_;
    DeviceRows batch_;
    bool loaded_ = false;
    std::size_t loaded_begin_ = 0;
    MemoryBudget budget_;
    DownloadedLists pieces_;
    std::uint64_t escalated_ = 0;
};

/// Whether the filter in half precision is worth its preparation, and holds.
bool fp16_helps(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
                const ItemsPlace& place, double largest, const Fp16FilterDevice& device,
                const Plan& plan) {
    // Where others can use what is made of the items, one query is enough.
    const std::size_t few_queries = place.key.range != 0 ? 0 : 16;
    return Fp16SpaceChoice::usable(parameters.metric, items, largest) &&
           device.can_filter(Fp16Space::padded_of(items.dimensions)) &&
           queries.rows > few_queries && items.rows >= Fp16Search::kLeastItems &&
           plan.shape.is_short() && (plan.shape.open || 8 * parameters.k <= items.rows);
}

Status run(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
           const RowKeys& keys, const DeviceWork& work, UploadRing& ring, ItemCache* cache,
           Execution& execution, Neighbors& answer, KnnCounts& counts, bool measure) {
    GPUTEXT_TRY(check(parameters, queries, items, keys));
    const auto largest_query = largest_magnitude(queries, "query", execution);
    if (!largest_query.ok()) return largest_query.status();
    // What is known of the cosine's items may be a bound alone, and they may not be there so far:
    // the host reads none of them.
    const auto largest_item = parameters.metric == Metric::cosine
                                  ? magnitude_bound(items, "item", execution)
                                  : largest_magnitude(items, "item", execution);
    if (!largest_item.ok()) return largest_item.status();
    answer.begins.assign(queries.rows + 1, 0);
    if (queries.rows == 0 || items.rows == 0) return {};

    std::size_t memory = work.bytes;
    ItemsPlace place;
    GPUTEXT_TRY(find_items(parameters, queries, items, ring, cache, execution, place, memory));
    Fp16FilterDevice device;
    GPUTEXT_TRY(device.look());
    const auto planned = [&]() -> Result<Plan> {
        Plan plan(parameters, queries, items, place);
        const std::size_t least = plan.bytes(queries, items).least;
        if (memory < least) return too_little_memory("finding neighbors takes", least, memory);
        if (fp16_helps(parameters, queries, items, place, *largest_item, device, plan))
            plan.use_fp16(memory, queries, items, place);
        plan.use(memory, queries, items);
        return plan;
    };
    auto plan = planned();
    if (!plan.ok()) return plan.status();
    if (place.made != nullptr && (!plan->fp16 || plan->item_batch < items.rows)) {
        // What was made is of all items together.
        place.made = nullptr;
        auto other = planned();
        if (!other.ok()) return other.status();
        *plan = *other;
    }
    Knn knn(parameters, queries, items, keys, *plan, place, device, work, ring, execution, measure);
    GPUTEXT_TRY(knn.run(answer, counts));
    if (place.key.range != 0) {
        Fp16ItemSet made = knn.take_items();
        if (made.rows.size() > 0) cache->add(place.key, std::move(made));
    }
    return {};
}

}  // namespace

KnnBytes knn_bytes(const KnnParameters& parameters, const Vectors& queries, const Vectors& items) {
    return Plan(parameters, queries, items).bytes(queries, items);
}

Result<Neighbors> knn(const KnnParameters& parameters, const Vectors& queries,
                       const Vectors& items, const RowKeys& keys, const DeviceWork& work,
                       UploadRing& ring, Execution& execution, KnnCounts* counts,
                       ItemCache* cache) {
    Neighbors answer;
    KnnCounts uncounted;
    const Status status = run(parameters, queries, items, keys, work, ring, cache, execution,
                              answer, counts != nullptr ? *counts : uncounted, counts != nullptr);
    GPUTEXT_TRY(finish_work(status, work.stream, "finding neighbors"));
    return answer;
}

}  // namespace gputext::gpu
