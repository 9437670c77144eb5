#include "kernels/knn/keyed_knn.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/knn/distinct_rows.hpp"
#include "cpp/knn/distinct_search.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/knn/neighbors.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/knn/detail/keyed_lists.hpp"
#include "kernels/knn/knn.hpp"

namespace gputext::gpu {
namespace {

// Groups of at least so many items and so many elements in all their pairs are searched with a
// filter, which takes a few milliseconds to begin.
constexpr std::uint64_t kLeastLargeItems = 1024;
constexpr double kLeastLargeElements = 2e9;
/// More items would make the lists of a tile too long.
constexpr std::uint64_t kMostItems = std::uint64_t{1} << 20;
/// One half warp or warp goes over so many items of a query; of more items all pairs are listed.
constexpr std::uint64_t kMostListedItems = 2048;

constexpr std::size_t kMostQueries = std::size_t{1} << 20;  // of a tile
constexpr double kMostElements = 8e9;                       // of a tile's pairs: some 20 ms
constexpr std::size_t kSmallBuffers = std::size_t{1} << 20;
constexpr std::size_t kGatheredBytes = std::size_t{1} << 30;  // of a large group's queries, at once

constexpr std::size_t kBytesOfPacked = sizeof(std::uint32_t) + sizeof(double);
constexpr std::size_t kBytesOfListed = kBytesOfPacked + kBytesOfPacked;
constexpr std::size_t kBytesOfSorted = SortedLists::kBytesOfPair + kBytesOfPacked;

std::size_t row_bytes(const Vectors& vectors) {
    return vectors.dimensions * element_size(vectors.type);
}

/// What one search takes of the device's memory, and which groups are searched how.
class Plan {
public:
    Plan(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
         const KeyGroups& groups)
        : groups_(groups),
          dimensions_(static_cast<double>(std::max<std::size_t>(items.dimensions, 16))),
          listed_(parameters.k <= kMostListed && !parameters.include_ties),
          k_(std::min<std::size_t>(parameters.k, kMostListed)),
          fixed_(kSmallBuffers + items.rows * sizeof(std::uint32_t)),
          per_query_(row_bytes(queries) + DeviceQueries::bytes_per_row(queries.dimensions) +
                     SortedLists::kBytesOfQuery + 4 * sizeof(std::uint32_t) +
                     kMostListed * kBytesOfListed),
          per_item_(row_bytes(items) + 2 * sizeof(std::uint32_t)),
          all_items_(items.rows) {}

    /// Requires bytes().least.
    void use(std::size_t memory) {
        const std::size_t available = memory - fixed_;
        // Queries need no more than the largest tile takes.
        const std::size_t most_for_tile =
            kMostQueries * per_query_ + pairs_of_tile() * kBytesOfSorted;
        tile_bytes_ = std::min(available / 2, most_for_tile);
        item_bytes_ = available - tile_bytes_;
    }

    KeyedKnnBytes bytes() const {
        return {fixed_ + 2 * (per_query_ + per_item_ + kLeastLargeItems * kBytesOfSorted),
                fixed_ + kMostQueries * per_query_ + pairs_of_tile() * kBytesOfSorted +
                    all_items_ * per_item_};
    }

    bool large(std::size_t group) const {
        const std::uint64_t items = groups_.items_of(group).size();
        const auto pairs =
            static_cast<double>(items) * static_cast<double>(groups_.queries_of(group).size());
        if (items >= kLeastLargeItems && pairs * dimensions_ >= kLeastLargeElements) return true;
        return items > kMostItems || per_query_ + items * kBytesOfSorted > tile_bytes_ ||
               (items + 1) * per_item_ > item_bytes_;
    }
    /// Whether a query's nearest items are kept while its group's are looked at.
    bool listed(std::size_t group) const {
        return listed_ && groups_.items_of(group).size() <= kMostListedItems;
    }
    std::size_t k() const { return k_; }
    std::size_t item_bytes() const { return item_bytes_; }
    std::size_t bytes_of_items(std::size_t items) const { return items * per_item_; }

    std::uint64_t pairs_of_tile() const {
        return static_cast<std::uint64_t>(kMostElements / dimensions_);
    }
    /// Whether a tile has room for so many queries with so many pairs.
    bool holds(std::size_t queries, std::uint64_t pairs, bool listed) const {
        if (queries > kMostQueries || (queries > 1 && pairs > pairs_of_tile())) return false;
        return queries * per_query_ + (listed ? 0 : pairs * kBytesOfSorted) <= tile_bytes_;
    }

private:
    const KeyGroups& groups_;
    double dimensions_;
    bool listed_;
    std::size_t k_;
    std::size_t fixed_, per_query_, per_item_, all_items_;
    std::size_t tile_bytes_ = 0, item_bytes_ = 0;
};

/// Groups [begin, end), some of which may be large ones, and where their items are.
struct Range {
    std::size_t begin = 0, end = 0;
    bool in_place = false;  // items lie as on the host, all of them
};

/// Queries of one tile on the host.
struct Tile {
    std::vector<std::uint32_t> queries, groups, begins, keys;
    std::vector<Bytes> rows;
    std::uint64_t pairs = 0;

    void clear() {
        queries.clear();
        groups.clear();
        begins.assign(1, 0);
        keys.clear();
        rows.clear();
        pairs = 0;
    }
};

/// Appends a row to pieces of consecutive rows.
void append_row(std::vector<Bytes>& pieces, const Vectors& vectors, std::uint32_t row) {
    const std::size_t size = row_bytes(vectors);
    const auto* data = reinterpret_cast<const std::uint8_t*>(vectors.row_bytes(row));
    if (!pieces.empty() && pieces.back().data() + pieces.back().size() == data)
        pieces.back() = {pieces.back().data(), pieces.back().size() + size};
    else
        pieces.emplace_back(data, size);
}

std::vector<std::uint32_t> keys_of(std::span<const std::uint32_t> keys,
                                   std::span<const std::uint32_t> rows) {
    std::vector<std::uint32_t> some;
    if (keys.empty()) return some;
    some.reserve(rows.size());
    for (const std::uint32_t row : rows) some.push_back(keys[row]);
    return some;
}

class KeyedKnn {
public:
    KeyedKnn(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
             const KeyGroups& groups, const RowKeys& excluded, const DeviceWork& work,
             UploadRing& ring, Execution& execution, ItemCache* cache, bool measure)
        : parameters_(parameters),
          queries_(queries),
          items_(items),
          groups_(groups),
          excluded_(excluded),
          work_(work),
          stream_(work.stream),
          ring_(ring),
          execution_(execution),
          cache_(cache),
          plan_(parameters, queries, items, groups),
          budget_(parameters.answer_limit),
          timer_(measure, work.stream) {}

    Status run(Neighbors& answer, KeyedKnnCounts& counts) {
        const std::size_t least = plan_.bytes().least;
        if (work_.bytes < least)
            return too_little_memory("finding neighbors within keys takes", least, work_.bytes);
        plan_.use(work_.bytes);
        GPUTEXT_TRY(search_large_groups());
        GPUTEXT_TRY(search_small_groups());
        GPUTEXT_TRY(found_.put_together(queries_.rows, execution_, answer));
        answer.rescored += rescored_;
        counts_.search_ms = timer_.milliseconds();
        counts = counts_;
        return {};
    }

private:
    // ---- Groups as matrices ----

    Status search_large_groups() {
        for (std::size_t group = 0; group < groups_.size(); ++group)
            if (plan_.large(group)) GPUTEXT_TRY(search_large(group));
        return {};
    }

    Status search_large(std::size_t group) {
        ++counts_.large_groups;
        const auto of_group = groups_.queries_of(group), rows = groups_.items_of(group);
        GatheredRows items;
        GPUTEXT_TRY(items.set(items_, rows, execution_));
        const auto item_keys = keys_of(excluded_.items, rows);
        const std::size_t at_once =
            of_group.size() == queries_.rows
                ? of_group.size()
                : std::max<std::size_t>(1, kGatheredBytes / (row_bytes(queries_) + 1));
        for (std::size_t begin = 0; begin < of_group.size(); begin += at_once) {
            const auto some = of_group.subspan(begin, std::min(at_once, of_group.size() - begin));
            GPUTEXT_TRY(search_matrix(some, rows, items.vectors(), item_keys));
        }
        return {};
    }

    Status search_matrix(std::span<const std::uint32_t> queries,
                         std::span<const std::uint32_t> rows, const Vectors& items,
                         std::span<const std::uint32_t> item_keys) {
        GatheredRows gathered;
        GPUTEXT_TRY(gathered.set(queries_, queries, execution_));
        const auto query_keys = keys_of(excluded_.queries, queries);
        KnnParameters parameters = parameters_;
        parameters.answer_limit = budget_.limit() - std::min(budget_.limit(), budget_.used());
        const auto search = [&](const KnnParameters& wanted, const Vectors& of,
                                const Vectors& among, const RowKeys& own) {
            return gpu::knn(wanted, of, among, own, work_, ring_, execution_, nullptr, cache_);
        };
        auto found = search_distinct_if_it_pays(parameters, gathered.vectors(), items,
                                                {query_keys, item_keys}, search, execution_);
        if (!found.ok()) return found.status();
        GPUTEXT_TRY(budget_.take(found->items.size() * kBytesOfNeighbor, "the neighbors"));
        for (std::uint32_t& item : (*found).items) item = rows[item];
        found_.add({queries.begin(), queries.end()}, std::move(*found));
        return execution_.checkpoint(0);
    }

    // ---- Groups as lists of places ----

    Status search_small_groups() {
        GPUTEXT_TRY(number_groups(groups_.queries, groups_.query_begins, queries_.rows, execution_,
                                  group_of_));
        small_.resize(groups_.size());
        std::size_t small_items = 0;
        std::uint64_t small_queries = 0;
        for (std::size_t group = 0; group < groups_.size(); ++group) {
            small_[group] = !plan_.large(group);
            if (!small_[group]) continue;
            some_[plan_.listed(group)] = true;
            small_items += groups_.items_of(group).size();
            small_queries += groups_.queries_of(group).size();
        }
        if (small_queries == 0) return {};
        execution_.begin_phase("finding neighbors", (small_queries * row_bytes(queries_) +
                                                      small_items * row_bytes(items_)) /
                                                             UploadRing::slice +
                                                         1);
        GPUTEXT_TRY(event_.create());
        if (!excluded_.items.empty()) GPUTEXT_TRY(item_keys_.upload(excluded_.items, stream_));
        GPUTEXT_TRY(find_items(small_items));
        if (in_place_) return search_range({0, groups_.size(), true});
        for (std::size_t begin = 0; begin < groups_.size();) {
            std::size_t end = begin, items = 0;
            for (; end < groups_.size(); ++end) {
                const std::size_t more = small_[end] ? groups_.items_of(end).size() : 0;
                if (plan_.bytes_of_items(items + more + 1) > plan_.item_bytes() && items > 0) break;
                items += more;
            }
            GPUTEXT_TRY(search_range({begin, end, false}));
            begin = end;
        }
        return {};
    }

    /// Whether all items are on the device as they lie here, or go there.
    Status find_items(std::size_t small_items) {
        const auto* data = reinterpret_cast<const std::uint8_t*>(items_.row_bytes(0));
        const std::size_t bytes = items_.rows * row_bytes(items_);
        const std::size_t places = (items_.rows + groups_.size() + 1) * sizeof(std::uint32_t);
        if (plan_.item_bytes() < places) return {};
        const auto found = ring_.resident({data, bytes}, plan_.item_bytes() - places, execution_);
        if (!found.ok()) return found.status();
        const bool aligned =
            reinterpret_cast<std::uintptr_t>(found->data) % element_size(items_.type) == 0;
        if (found->data != nullptr && aligned) {
            in_place_ = true;
            item_rows_ = found->data;
            return event_.hold(stream_, ring_.stream());
        }
        if (found->copied > 0 || bytes > plan_.item_bytes() - places ||
            2 * small_items < items_.rows)
            return {};
        in_place_ = true;
        GPUTEXT_TRY(own_rows_.allocate(bytes, stream_));
        item_rows_ = own_rows_.data();
        const Bytes all{data, bytes};
        return upload({&all, 1}, own_rows_.data());
    }

    Status upload(std::span<const Bytes> pieces, std::uint8_t* to) {
        // Behind the allocation, and what the kernels before read of it.
        GPUTEXT_TRY(event_.hold(ring_.stream(), stream_));
        GPUTEXT_TRY(ring_.copy_pieces(to, pieces, execution_));
        return event_.hold(stream_, ring_.stream());
    }

    Status search_range(const Range& range) {
        ++counts_.ranges;
        GPUTEXT_TRY(load_items(range));
        for (const bool listed : {true, false}) {
            if (!some_[listed]) continue;
            // Queries come in their order, or in that of groups.
            const std::uint64_t end =
                range.in_place ? queries_.rows : groups_.query_begins[range.end];
            std::uint64_t at = range.in_place ? 0 : groups_.query_begins[range.begin];
            while (at < end) {
                GPUTEXT_TRY(fill_tile(range, listed, at, end));
                if (!tile_.queries.empty()) GPUTEXT_TRY(search_tile(listed));
                GPUTEXT_TRY(execution_.checkpoint(0));
            }
        }
        return {};
    }

    /// Small groups' items, one group behind the other; large ones have none.
    Status load_items(const Range& range) {
        std::vector<std::uint32_t> ids, begins(1, 0);
        std::vector<Bytes> rows;
        for (std::size_t group = range.begin; group < range.end; ++group) {
            if (small_[group]) {
                const auto items = groups_.items_of(group);
                ids.insert(ids.end(), items.begin(), items.end());
                if (!range.in_place)
                    for (const std::uint32_t item : items) append_row(rows, items_, item);
            }
            begins.push_back(static_cast<std::uint32_t>(ids.size()));
            if (group % 65536 == 0) GPUTEXT_TRY(execution_.checkpoint(0));
        }
        GPUTEXT_TRY(ids_.upload(ids, stream_));
        GPUTEXT_TRY(begins_.upload(begins, stream_));
        DeviceRows of_items{items_.type, item_rows_, static_cast<std::uint32_t>(items_.rows),
                            static_cast<std::uint32_t>(items_.dimensions)};
        if (!range.in_place) {
            const std::size_t bytes = ids.size() * row_bytes(items_);
            if (bytes > own_rows_.size()) GPUTEXT_TRY(own_rows_.allocate(bytes, stream_));
            if (bytes > 0) GPUTEXT_TRY(upload(rows, own_rows_.data()));
            of_items.elements = own_rows_.data();
            of_items.rows = static_cast<std::uint32_t>(ids.size());
        }
        device_items_ = {of_items, ids_.data(), begins_.data(),
                         excluded_.items.empty() ? nullptr : item_keys_.data(), !range.in_place};
        // The host's lists go away.
        return cuda_status(cudaStreamSynchronize(stream_), "copying items");
    }

    /// Takes queries from `at` on into the tile, as many as it holds.
    Status fill_tile(const Range& range, bool listed, std::uint64_t& at, std::uint64_t end) {
        tile_.clear();
        for (std::uint64_t looked = 0; at < end; ++at) {
            if (++looked % (1 << 20) == 0) GPUTEXT_TRY(execution_.checkpoint(0));
            const std::uint32_t query =
                range.in_place ? static_cast<std::uint32_t>(at) : groups_.queries[at];
            const std::uint32_t group = group_of_[query];
            if (group == kNoKey || !small_[group] || plan_.listed(group) != listed) continue;
            const std::uint64_t pairs = groups_.items_of(group).size();
            if (!plan_.holds(tile_.queries.size() + 1, tile_.pairs + pairs, listed) &&
                !tile_.queries.empty())
                return {};
            tile_.queries.push_back(query);
            tile_.groups.push_back(group - static_cast<std::uint32_t>(range.begin));
            tile_.pairs += pairs;
            if (!listed) tile_.begins.push_back(static_cast<std::uint32_t>(tile_.pairs));
            if (!excluded_.queries.empty()) tile_.keys.push_back(excluded_.queries[query]);
            append_row(tile_.rows, queries_, query);
        }
        return {};
    }

    Status search_tile(bool listed) {
        ++counts_.tiles;
        counts_.pairs += tile_.pairs;
        rescored_ += tile_.pairs;
        const auto count = static_cast<std::uint32_t>(tile_.queries.size());
        KeyedQueries queries;
        GPUTEXT_TRY(load_queries(queries));
        if (counts_of_.size() < count) {
            GPUTEXT_TRY(counts_of_.allocate(count, stream_));
            GPUTEXT_TRY(offsets_.allocate(count + std::size_t{1}, stream_));
        }
        const KeyedWanted wanted{
            parameters_.metric, parameters_.radius,
            static_cast<std::uint32_t>(std::min<std::size_t>(parameters_.k, UINT32_MAX)),
            parameters_.include_ties};
        KeyedLists lists;
        GPUTEXT_TRY(listed ? list_nearest_items(wanted, queries, lists)
                           : list_all_items(wanted, queries, lists));
        timer_.end();
        std::uint32_t total = 0;
        GPUTEXT_TRY(packing_.offsets(lists, count, offsets_.data(), total, stream_));
        return take(lists, count, total);
    }

    Status load_queries(KeyedQueries& queries) {
        const auto count = static_cast<std::uint32_t>(tile_.queries.size());
        const std::size_t bytes = count * row_bytes(queries_);
        if (raw_queries_.size() < bytes) GPUTEXT_TRY(raw_queries_.allocate(bytes, stream_));
        if (squares_.size() < count) {
            GPUTEXT_TRY(squares_.allocate(count, stream_));
            GPUTEXT_TRY(elements_.allocate(count * queries_.dimensions, stream_));
        }
        if (bytes > 0) GPUTEXT_TRY(upload(tile_.rows, raw_queries_.data()));
        GPUTEXT_TRY(query_groups_.upload(tile_.groups, stream_));
        GPUTEXT_TRY(query_keys_.upload(tile_.keys, stream_));
        const auto dimensions = static_cast<std::uint32_t>(queries_.dimensions);
        timer_.begin();
        GPUTEXT_TRY(prepare_queries(parameters_.metric,
                                    {queries_.type, raw_queries_.data(), count, dimensions},
                                    elements_.data(), squares_.data(), stream_));
        queries.rows = {count, dimensions, elements_.data(), squares_.data(),
                        tile_.keys.empty() ? nullptr : query_keys_.data()};
        queries.groups = query_groups_.data();
        return {};
    }

    Status list_nearest_items(const KeyedWanted& wanted, const KeyedQueries& queries,
                              KeyedLists& lists) {
        const std::size_t places = tile_.queries.size() * plan_.k();
        if (keys_.size() < places) {
            GPUTEXT_TRY(keys_.allocate(places, stream_));
            GPUTEXT_TRY(places_.allocate(places, stream_));
        }
        lists = {nullptr, wanted.k, keys_.data(), places_.data(), counts_of_.data()};
        return list_nearest(wanted, queries, device_items_, lists, stream_);
    }

    Status list_all_items(const KeyedWanted& wanted, const KeyedQueries& queries,
                          KeyedLists& lists) {
        const auto pairs = static_cast<std::uint32_t>(tile_.pairs);
        GPUTEXT_TRY(query_begins_.upload(tile_.begins, stream_));
        if (sorted_pairs_ < pairs) {
            GPUTEXT_TRY(sorted_.allocate(pairs, stream_));
            sorted_pairs_ = pairs;
        }
        return sorted_.list_all(wanted, queries, device_items_, query_begins_.data(), pairs,
                                counts_of_.data(), lists);
    }

    /// Copies the tile's lists to the host.
    Status take(const KeyedLists& lists, std::uint32_t count, std::uint32_t total) {
        GPUTEXT_TRY(budget_.take(total * kBytesOfNeighbor, "the neighbors"));
        if (packed_items_.size() < total) {
            GPUTEXT_TRY(packed_items_.allocate(total, stream_));
            GPUTEXT_TRY(packed_distances_.allocate(total, stream_));
        }
        GPUTEXT_TRY(packing_.pack(lists, count, ids_.data(), offsets_.data(), packed_items_.data(),
                                  packed_distances_.data(), stream_));
        std::vector<std::uint32_t> offsets(count + std::size_t{1});
        Neighbors found;
        found.items.resize(total);
        found.distances.resize(total);
        const auto copy = [&](auto& to, const auto* from) {
            return ring_.copy_back(
                {reinterpret_cast<std::uint8_t*>(to.data()), to.size() * sizeof to[0]},
                reinterpret_cast<const std::uint8_t*>(from), stream_, execution_);
        };
        GPUTEXT_TRY(copy(offsets, offsets_.data()));
        if (total > 0) {
            GPUTEXT_TRY(copy(found.items, packed_items_.data()));
            GPUTEXT_TRY(copy(found.distances, packed_distances_.data()));
        }
        found.begins.assign(offsets.begin(), offsets.end());
        found_.add(std::move(tile_.queries), std::move(found));
        return {};
    }

    const KnnParameters& parameters_;
    const Vectors& queries_;
    const Vectors& items_;
    const KeyGroups& groups_;
    const RowKeys& excluded_;
    const DeviceWork& work_;
    cudaStream_t stream_;
    UploadRing& ring_;
    Execution& execution_;
    ItemCache* const cache_;
    Plan plan_;
    MemoryBudget budget_;
    StreamTimer timer_;
    ScatteredNeighbors found_;
    KeyedKnnCounts counts_;
    std::uint64_t rescored_ = 0;

    std::vector<std::uint32_t> group_of_;  // of each query
    std::vector<bool> small_;              // of each group
    bool some_[2] = {};                    // whether small groups are listed or not
    Tile tile_;

    StreamEvent event_;
    bool in_place_ = false;
    const std::uint8_t* item_rows_ = nullptr;  // in place
    DeviceBuffer<std::uint8_t> own_rows_;
    DeviceBuffer<std::uint32_t> ids_, begins_, item_keys_;
    KeyedItems device_items_;
    DeviceBuffer<std::uint8_t> raw_queries_;
    DeviceBuffer<double> elements_, squares_;
    DeviceBuffer<std::uint32_t> query_groups_, query_keys_, query_begins_;
    DeviceBuffer<std::uint64_t> keys_;
    DeviceBuffer<std::uint32_t> places_, counts_of_, offsets_;
    SortedLists sorted_;
    std::uint32_t sorted_pairs_ = 0;
    KeyedPacking packing_;
    DeviceBuffer<std::uint32_t> packed_items_;
    DeviceBuffer<double> packed_distances_;
};

Status run(const KnnParameters& parameters, const Vectors& queries, const Vectors& items,
           const KeyGroups& groups, const RowKeys& excluded, const DeviceWork& work,
           UploadRing& ring, Execution& execution, ItemCache* cache, Neighbors& answer,
           KeyedKnnCounts& counts, bool measure) {
    if (queries.sparse() || items.sparse())
        return {ErrorCode::invalid_argument, "sparse vectors are not compared on a GPU"};
    GPUTEXT_TRY(check_search(parameters, queries, items, excluded));
    if (const auto largest = largest_magnitude(queries, "query", execution); !largest.ok())
        return largest.status();
    if (const auto largest = largest_magnitude(items, "item", execution); !largest.ok())
        return largest.status();
    answer.begins.assign(queries.rows + 1, 0);
    if (groups.size() == 0) return {};
    try {
        KeyedKnn search(parameters, queries, items, groups, excluded, work, ring, execution, cache,
                        measure);
        // Its buffers outlive what is on the streams.
        return finish_work(search.run(answer, counts), work.stream, "finding neighbors");
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
}

}  // namespace

KeyedKnnBytes keyed_knn_bytes(const KnnParameters& parameters, const Vectors& queries,
                              const Vectors& items, const KeyGroups& groups) {
    KeyedKnnBytes bytes = Plan(parameters, queries, items, groups).bytes();
    // A group that is searched as matrices may need more.
    bytes.least = std::max(bytes.least, knn_bytes(parameters, queries, items).least);
    bytes.good = std::max(bytes.good, bytes.least);
    return bytes;
}

Result<Neighbors> keyed_knn(const KnnParameters& parameters, const Vectors& queries,
                             const Vectors& items, const KeyGroups& groups, const RowKeys& excluded,
                             const DeviceWork& work, UploadRing& ring, Execution& execution,
                             KeyedKnnCounts* counts, ItemCache* cache) {
    Neighbors answer;
    KeyedKnnCounts uncounted;
    const Status status =
        run(parameters, queries, items, groups, excluded, work, ring, execution, cache, answer,
            counts != nullptr ? *counts : uncounted, counts != nullptr);
    GPUTEXT_TRY(finish_work(status, work.stream, "finding neighbors"));
    return answer;
}

}  // namespace gputext::gpu
