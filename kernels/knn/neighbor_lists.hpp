// kernels/knn/neighbor_lists.hpp - lists of each query's nearest items so far, and of the items
// just found
//
// A list holds the items kept so far, in order and with their distances, and behind them the items
// that a filter has found since. Merging computes exact distances of the latter, sorts, and keeps
// the k nearest by (distance, item). A list that a filter overflowed is left unchanged: the caller
// asks for these lists, and filters the same items again, fewer at a time.

#pragma once

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/knn/distance.hpp"
#include "cpp/knn/knn.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/pinned_buffer.hpp"
#include "kernels/knn/detail/device_rows.hpp"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {

/// Some rows of a tile of queries, or all of its first ones.
struct QuerySelection {
    const std::uint32_t* rows = nullptr;  // on the device; null: 0, 1, 2 ...
    std::uint32_t count = 0;

    __host__ __device__ std::uint32_t operator[](std::uint32_t i) const {
        return rows == nullptr ? i : rows[i];
    }
};

/// Doubles in their order, as integers.
inline constexpr std::uint64_t kNoDistance = UINT64_MAX;
__host__ __device__ inline std::uint64_t ordered_bits(std::uint64_t bits) {
    return bits >> 63 ? ~bits : bits | std::uint64_t{1} << 63;
}
__host__ __device__ inline std::uint64_t bits_of_ordered(std::uint64_t ordered) {
    return ordered >> 63 ? ordered & ~(std::uint64_t{1} << 63) : ~ordered;
}

/// As kernels see the lists; list q begins at q * capacity.
struct ListsView {
    std::uint32_t k;
    std::uint32_t capacity;
    std::uint32_t* items;
    std::uint32_t* counts;  // kept and found, those beyond the capacity too
    std::uint32_t* kept;
    std::uint64_t* keys;  // ordered_bits of distances; those of found items after merging only
    double* limits;       // the k-th kept distance, or the radius: items beyond it are not needed
    float* scores;        // of found items, the larger the nearer; null when no filter gives any
};

/// Where the queries are written whose lists overflowed or are not proven.
struct FailedLists {
    const float* wanted = nullptr;  // by query; null: there is nothing to prove
    const float* proven = nullptr;
    double radius = 0;
    std::uint32_t* queries = nullptr;
    /// How many they are, and how many blocks are done; both are 0 before and after.
    std::uint32_t* counters = nullptr;
    std::uint64_t* reported = nullptr;  // word of the host's: how many they are, and kReported
};
inline constexpr std::uint64_t kReported = std::uint64_t{1} << 32;

#ifdef __CUDACC__
/// Makes a list empty.
__device__ inline void clear_list(const ListsView& lists, std::uint32_t query, double limit) {
    lists.counts[query] = 0;
    lists.kept[query] = 0;
    lists.limits[query] = limit;
}

/// Writes an item that a filter found to the list's place `at`, of those counted, if it has one.
__device__ inline void put_found(const ListsView& lists, std::uint32_t query, std::uint32_t at,
                                 std::uint32_t item, float score) {
    if (at >= lists.capacity) return;
    const std::size_t place = std::size_t{query} * lists.capacity + at;
    lists.items[place] = item;
    if (lists.scores != nullptr) lists.scores[place] = score;
}

/// Adds an item that a filter found.
__device__ inline void add_found(const ListsView& lists, std::uint32_t query, std::uint32_t item,
                                 float score = 0) {
    put_found(lists, query, atomicAdd(&lists.counts[query], 1u), item, score);
}

/// Undoes what was found for a list that overflowed or is not proven, and lists its query in
/// `failed`.
__device__ inline void take_if_failed(const ListsView& lists, std::uint32_t query,
                                      const FailedLists& failed) {
    const bool overflowed = lists.counts[query] > lists.capacity;
    const bool unproven = failed.wanted != nullptr && failed.proven[query] < failed.wanted[query];
    if (!overflowed && !unproven) return;
    if (!overflowed) {
        // Nothing was kept before a score was guessed.
        lists.kept[query] = 0;
        lists.limits[query] = failed.radius;
    }
    lists.counts[query] = lists.kept[query];
    failed.queries[atomicAdd(&failed.counters[0], 1u)] = query;
}

/// Called by one thread of each block of the grid, after all that its block wrote. The last block
/// tells the host.
__device__ inline void report_failed(const FailedLists& failed) {
    if (gridDim.x > 1) {
        __threadfence();
        if (atomicAdd(&failed.counters[1], 1u) != gridDim.x - 1) return;
        __threadfence();
        failed.counters[1] = 0;
    }
    const std::uint32_t count = atomicExch(&failed.counters[0], 0u);
    write_word(failed.reported, kReported | count);
}
#endif

/// Items that were found, as bits. Of 128 items from number i on, word w of four has the items
/// i + 8 * e + 2 * w + c, c = 0 or 1, at bits 31 - 2 * e - c.
struct MarkedItems {
    static constexpr std::uint32_t most_items = 1 << 16;
    static constexpr std::uint32_t most_dimensions = 64;

    const std::uint32_t* words = nullptr;  // of all queries
    std::uint32_t per_query = 0;
    std::uint32_t first_item = 0;
    const std::byte* rows = nullptr;  // the items' from first_item on, each from a whole vector on
    std::uint32_t row_vectors = 0;    // of 16 bytes; zeros behind the last element

    __host__ __device__ static std::uint32_t words_of(std::uint32_t items) {
        return (items + 127) / 128 * 4;
    }
    /// The item of a bit that has `before` higher ones in its word, from first_item on.
    __host__ __device__ static std::uint32_t item(std::uint32_t word, unsigned before) {
        return word / 4 * 128 + before / 2 * 8 + word % 4 * 2 + before % 2;
    }
    static std::uint32_t row_vectors_of(std::size_t dimensions, ElementType type) {
        return static_cast<std::uint32_t>((dimensions * element_size(type) + 15) / 16);
    }
};

/// Shared memory of a block that merges marked items into lists of such a capacity.
std::size_t shared_bytes_for_marks(const MarkedItems& marked, std::uint32_t capacity);

/// Of queries that are no items.
inline constexpr std::uint32_t kNoItems = UINT32_MAX;

/// What found items are scored with. Items have numbers from `first_item` on.
struct MergeInput {
    Metric metric;
    DeviceQueries queries;
    DeviceRows items;
    std::uint32_t first_item;
    const std::uint32_t* item_keys;  // of all items, or null; see DeviceQueries
    /// Twice the error of a query's scores, or null where scores do not help.
    const float* score_widths;
    /// For empty short lists: the items found, in place of the lists' contents. Only where a block
    /// may have shared_bytes_for_marks().
    MarkedItems marked = {};
    /// Where the queries are items themselves, and only items before each are near it: the number
    /// of the first one.
    std::uint32_t first_query = kNoItems;
};

class NeighborLists {
public:
    struct Shape {
        std::uint32_t k;         // kept at most
        std::uint32_t capacity;  // above k; of short lists a power of two
        bool scored;
        bool open;  // limits stay as they are: the caller takes away what is kept

        bool is_short() const { return capacity <= kShort; }
        /// Items that always find room behind the ones that are kept.
        std::uint32_t room() const { return capacity - (open ? 0 : k); }
    };
    /// Lists up to this long are sorted in shared memory, others by CUB.
    static constexpr std::uint32_t kShort = 4096;

    static std::size_t bytes_per_query(const Shape& shape);

    /// Errors: out_of_memory, device_error.
    Status allocate(const Shape& shape, std::uint32_t queries, cudaStream_t stream);
    /// Makes lists empty. Their limits become the radius.
    Status reset(std::uint32_t queries, double radius);
    /// The same, but a kernel that the caller launches next empties the lists, by clear_list().
    void begin_reset(double radius) { radius_ = radius; }
    /// Their limits become the other lists', those of the same queries.
    Status reset(std::uint32_t queries, const NeighborLists& other);
    /// Makes lists empty whose contents were taken, and leaves their limits.
    Status forget_kept(std::uint32_t queries);

    const Shape& shape() const { return shape_; }
    ListsView view() const;

    /// Adds to `rescored`, on the device, the number of distances that it computes.
    Status merge(const MergeInput& input, const QuerySelection& selection,
                 unsigned long long* rescored);

    /// Keeps the nearest after the caller has written the found items' keys; kNoDistance drops one.
    Status keep(const QuerySelection& selection);

    /// Writes the selected queries whose list overflowed, in any order, and makes these lists what
    /// they were before. Also takes back queries whose proven[q] is below wanted[q], unless null.
    /// Waits for what is on the stream.
    Status take_failed(const QuerySelection& selection, const float* wanted, const float* proven,
                       std::uint32_t* failed, std::uint32_t& count);
    /// keep() and take_failed() of short lists, by one kernel.
    Status keep_and_take_failed(const QuerySelection& selection, const float* wanted,
                                const float* proven, std::uint32_t* failed, std::uint32_t& count);

    /// Copies what is kept of all queries, query by query: `begins` has one element more than
    /// there are queries. Takes kBytesOfNeighbor each from the budget. Waits for what is on the
    /// stream, once where the answer is small.
    Status download(std::uint32_t queries, MemoryBudget& budget, std::vector<std::uint64_t>& begins,
                    std::vector<std::uint32_t>& items, std::vector<double>& distances);

private:
    Status merge_short(const MergeInput& input, const QuerySelection& selection,
                       unsigned long long* rescored);
    Status merge_marked(const MergeInput& input, const QuerySelection& selection,
                        unsigned long long* rescored);
    Status merge_long(const MergeInput& input, const QuerySelection& selection,
                      unsigned long long* rescored);
    /// Makes ready what `failed` has of these lists.
    Status prepare(FailedLists& failed);
    Status wait_for_failed(std::uint32_t& count);
    Status download_small(std::uint32_t queries, MemoryBudget& budget,
                          std::vector<std::uint64_t>& begins, std::vector<std::uint32_t>& items,
                          std::vector<double>& distances);
    /// `failed`: also takes those back, where its queries are not null.
    Status keep_short(const QuerySelection& selection, const FailedLists& failed);
    Status keep_long(const QuerySelection& selection);

    Shape shape_{};
    double radius_ = 0;
    cudaStream_t stream_ = nullptr;
    DeviceBuffer<std::uint32_t> items_, sorted_items_, counts_, kept_;
    DeviceBuffer<std::uint32_t> counters_;  // of FailedLists, and of blocks that gather
    DeviceBuffer<std::uint64_t> keys_, sorted_keys_;
    DeviceBuffer<double> limits_;
    DeviceBuffer<float> scores_;
    DeviceBuffer<std::uint8_t> scratch_;
    PinnedBuffer pinned_;
};

/// How many of `groups` groups of samples must reach a gate, so that the k nearest of all items
/// reach it except in about one case in a hundred thousand: how many of them are sampled follows
/// Poisson's law.
inline std::uint32_t rank_of_gate(double k, double samples, double items, double groups) {
    const double mean = k * samples / items;
    const double rank = mean + 4 * std::sqrt(mean) + 3;
    return static_cast<std::uint32_t>(std::ceil(groups * (1 - std::pow(1 - 1 / groups, rank))));
}

/// Calls search(selection, begin, end), which adds what it finds of items [begin, end) to lists and
/// keeps the nearest. For queries whose list overflowed each half of the items is searched alone.
/// `taken` is called whenever open lists hold items that the caller must take away. Errors: those
/// of both functions, out_of_memory, device_error.
template <class Search>
Status fill_lists(NeighborLists& lists, const QuerySelection& selection, std::uint32_t begin,
                  std::uint32_t end, const std::function<Status()>& taken, cudaStream_t stream,
                  const Search& search) {
    GPUTEXT_TRY(search(selection, begin, end));
    DeviceBuffer<std::uint32_t> failed;
    std::uint32_t count = 0;
    // As many as there is room for never overflow.
    if (end - begin > lists.shape().room()) {
        GPUTEXT_TRY(failed.allocate(selection.count, stream));
        GPUTEXT_TRY(lists.take_failed(selection, nullptr, nullptr, failed.data(), count));
    }
    if (lists.shape().open) GPUTEXT_TRY(taken());
    if (count == 0) return {};
    const QuerySelection again{failed.data(), count};
    const std::uint32_t middle = begin + (end - begin) / 2;
    GPUTEXT_TRY(fill_lists(lists, again, begin, middle, taken, stream, search));
    return fill_lists(lists, again, middle, end, taken, stream, search);
}

/// What the lists of a tile of queries keep, behind the answer for earlier queries. Takes
/// kBytesOfNeighbor each from the budget. Waits for the stream.
Status append_kept(NeighborLists& lists, std::uint32_t queries, MemoryBudget& budget,
                   Neighbors& answer);

/// What open lists of a tile of queries held at several times, on the host.
class DownloadedLists {
public:
    /// Takes what they hold, and kBytesOfNeighbor each from the budget; empties them. Waits for
    /// the stream.
    Status take(NeighborLists& lists, std::uint32_t queries, MemoryBudget& budget);

    /// All that was taken, in order, behind the answer for earlier queries; nothing is left. Takes
    /// 16 bytes for each neighbor from the budget while they are sorted.
    Status append_to(Neighbors& answer, std::size_t queries, MemoryBudget& budget,
                     Execution& execution);

private:
    /// As Neighbors are packed.
    struct Piece {
        std::vector<std::uint64_t> begins;
        std::vector<std::uint32_t> items;
        std::vector<double> distances;
    };

    std::vector<Piece> pieces_;
};

}  // namespace gputext::gpu
