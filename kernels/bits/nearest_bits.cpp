#include "kernels/bits/nearest_bits.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/bits/ones_order.hpp"
#include "cpp/knn/nearest_list.hpp"
#include "kernels/base/bit_product.cuh"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/bits/detail/bit_pairs.hpp"

namespace gputext::gpu {
namespace {

/// More neighbors without a radius are found by the host: their lists take too long to cut down.
constexpr std::size_t kMostNearest = 1024;
/// Products of 256 bits in one launch: some 30 ms.
constexpr double kProductsAtOnce = 1.5e11;
/// Blocks that keep all multiprocessors busy, and tiles that one is worth.
constexpr std::uint32_t kPlentyOfBlocks = 528;
constexpr std::uint32_t kLeastTiles = 64;
/// Pairs within a radius that are listed at once.
constexpr std::uint64_t kMostPairs = std::uint64_t{1} << 26;
constexpr std::uint64_t kLeastPairs = std::uint64_t{1} << 15;
constexpr std::size_t kRowsOfStep = 256;  // of a thread's step

// ---- Rows on the device ----

std::uint32_t products_of(std::size_t bits) {
    return static_cast<std::uint32_t>((bits + 255) / 256);
}

/// The bytes of so many places and groups.
std::uint64_t bytes_of(const OnesOrder& order, std::uint32_t products) {
    return order.places() * (kProductWords * products + 3) * sizeof(std::uint32_t) +
           order.groups.size() * sizeof(OnesGroup);
}

/// What a part of the columns takes for each row.
std::uint64_t bytes_of_lists(std::uint32_t k) {
    return (std::uint64_t{k} + capacity_for(k)) * sizeof(NearKey);
}

class DeviceBits {
public:
    /// The copies are under way on the ring's stream when it returns.
    Status upload(const Vectors& bits, const OnesOrder& order,
                  std::span<const std::uint32_t> keys, UploadRing& ring, Execution& execution,
                  cudaStream_t stream) {
        const std::size_t words = kProductWords * products_of(bits.dimensions);
        const std::size_t bytes = row_size(ElementType::bit, bits.dimensions);
        std::vector<std::uint32_t> all(order.places() * words);
        std::vector<std::uint32_t> ones(order.places()), of_places;
        if (!keys.empty()) of_places.resize(order.places());
        execution.begin_phase("placing bits", order.groups.size());
        GPUTEXT_TRY(execution.parallel_for(order.groups.size(), [&](std::size_t i, unsigned) {
            const OnesGroup& group = order.groups[i];
            for (std::uint32_t place = group.begin; place < group.end; ++place) {
                if (place % (kLookEvery / 64) == 0 && execution.stop_requested())
                    return Status::cancelled();
                ones[place] = group.ones;
                const std::uint32_t number = order.numbers[place];
                if (number == kNoRow) continue;
                std::memcpy(all.data() + place * words, bits.row_bytes(number), bytes);
                if (!keys.empty()) of_places[place] = keys[number];
            }
            return Status();
        }));
        const auto copy = [&]<class T>(DeviceBuffer<T>& to, const std::vector<T>& from) -> Status {
            GPUTEXT_TRY(to.allocate(from.size(), stream));
            if (from.empty()) return {};
            // The ring's stream must not write before the memory is there.
            GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), "allocating device memory"));
            return ring.copy(reinterpret_cast<std::uint8_t*>(to.data()),
                             {reinterpret_cast<const std::uint8_t*>(from.data()),
                              from.size() * sizeof(T)},
                             execution);
        };
        places_ = static_cast<std::uint32_t>(order.places());
        GPUTEXT_TRY(copy(words_, all));
        GPUTEXT_TRY(copy(numbers_, order.numbers));
        GPUTEXT_TRY(copy(ones_, ones));
        GPUTEXT_TRY(copy(keys_, of_places));
        return copy(groups_, order.groups);
    }
    BitSide side() const {
        return {places_, words_.data(), numbers_.data(), ones_.data(), keys_.data()};
    }
    const OnesGroup* groups() const { return groups_.data(); }

private:
    std::uint32_t places_ = 0;
    DeviceBuffer<std::uint32_t> words_, numbers_, ones_, keys_;
    DeviceBuffer<OnesGroup> groups_;
};

// ---- A search ----

/// Steps of the radius, or more.
std::uint32_t steps_within(BitMetric metric, double radius) {
    const double steps = metric == BitMetric::hamming ? std::floor(radius)
                                                      : std::floor(radius * kStepsOfOne) + 1;
    return static_cast<std::uint32_t>(std::min(steps, kStepsOfOne));
}

class BitSearchOnDevice {
public:
    BitSearchOnDevice(const NearestBitsParameters& parameters, const Vectors& queries,
                      const Vectors& items, const DeviceWork& work, UploadRing& ring,
                      Execution& execution)
        : parameters_(parameters),
          queries_(queries),
          items_(items),
          work_(work),
          ring_(ring),
          execution_(execution),
          budget_(parameters.answer_limit) {}
    ~BitSearchOnDevice() {
        cudaStreamSynchronize(ring_.stream());
        cudaStreamSynchronize(work_.stream);
    }
    BitSearchOnDevice(const BitSearchOnDevice&) = delete;

    Status run(const RowKeys& excluded, Neighbors& answer) {
        GPUTEXT_TRY(set(excluded));
        execution_.begin_phase("comparing bits", rows_.places());
        GPUTEXT_TRY(parameters_.k <= kMostNearest ? run_nearest() : run_within());
        return answers_.put_together(queries_.rows, execution_, answer);
    }

private:
    Status set(const RowKeys& excluded);
    /// Of a search for so many.
    std::uint32_t nearest_of_row() const {
        return static_cast<std::uint32_t>(std::min(parameters_.k, items_.rows));
    }
    std::uint32_t rows_at_once() const;
    std::uint32_t parts_of(std::uint32_t rows) const;
    Status run_nearest();
    Status run_within();
    Status take_nearest(const PlaceRange& rows, std::uint32_t parts, std::uint32_t k,
                        const std::vector<NearKey>& keys);
    Status take_within(const PlaceRange& rows, const std::vector<NearPair>& pairs);
    template <class Find>
    Status take_rows(const PlaceRange& rows, Find&& find);
    double distance_of(std::uint32_t query, std::uint32_t item) const;

    const NearestBitsParameters& parameters_;
    const Vectors &queries_, &items_;
    const DeviceWork& work_;
    UploadRing& ring_;
    Execution& execution_;
    MemoryBudget budget_;
    ScatteredNeighbors answers_;
    std::mutex mutex_;
    OnesOrder rows_, columns_;
    DeviceBits device_rows_, device_columns_;
    DeviceBuffer<NearKey> limits_;
    StreamEvent event_;
    BitSearch search_{};
    std::uint64_t bytes_left_ = 0;
};

std::vector<std::uint32_t> all_of(std::size_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0u);
    return numbers;
}

Status BitSearchOnDevice::set(const RowKeys& excluded) {
    GPUTEXT_TRY(order_by_ones(queries_, all_of(queries_.rows), 1, execution_, rows_));
    GPUTEXT_TRY(order_by_ones(items_, all_of(items_.rows), kTilePlaces, execution_, columns_));
    search_.metric = parameters_.metric;
    search_.products = products_of(items_.dimensions);
    const std::uint64_t needed = bytes_of(rows_, search_.products) +
                                 bytes_of(columns_, search_.products) +
                                 rows_.places() * sizeof(NearKey);
    const std::uint64_t found = parameters_.k <= kMostNearest
                                    ? kBlockRows * bytes_of_lists(nearest_of_row())
                                    : (items_.rows + kLeastPairs) * sizeof(NearPair);
    const std::uint64_t least = needed + found;
    if (least > work_.bytes) return too_little_memory("bits take", least, work_.bytes);
    bytes_left_ = work_.bytes - needed;
    GPUTEXT_TRY(event_.create());
    GPUTEXT_TRY(device_rows_.upload(queries_, rows_, excluded.queries, ring_, execution_,
                                    work_.stream));
    GPUTEXT_TRY(device_columns_.upload(items_, columns_, excluded.items, ring_, execution_,
                                       work_.stream));
    GPUTEXT_TRY(event_.hold(work_.stream, ring_.stream()));
    search_.rows = device_rows_.side();
    search_.columns = device_columns_.side();
    search_.groups = device_columns_.groups();
    search_.group_count = static_cast<std::uint32_t>(columns_.groups.size());
    const std::vector<NearKey> limits(
        rows_.places(), NearKey{steps_within(parameters_.metric, parameters_.radius)} << 32 |
                            UINT32_MAX);
    GPUTEXT_TRY(limits_.upload(limits, work_.stream));
    search_.limits = limits_.data();
    return cuda_status(cudaStreamSynchronize(work_.stream), "copying bits to the device");
}

std::uint32_t BitSearchOnDevice::rows_at_once() const {
    const double of_row = static_cast<double>(columns_.places()) * search_.products;
    const double rows = std::min(kProductsAtOnce / of_row, 1e9);
    return std::max(kBlockRows, static_cast<std::uint32_t>(rows) / kBlockRows * kBlockRows);
}

/// Parts of the columns for blocks of their own.
std::uint32_t BitSearchOnDevice::parts_of(std::uint32_t rows) const {
    const std::uint32_t blocks = (rows + kBlockRows - 1) / kBlockRows;
    const auto most = static_cast<std::uint32_t>(columns_.places() / kTilePlaces / kLeastTiles);
    return std::clamp((kPlentyOfBlocks + blocks - 1) / blocks, 1u, std::max(1u, most));
}

double BitSearchOnDevice::distance_of(std::uint32_t query, std::uint32_t item) const {
    return row_distance(parameters_.metric, queries_, query, items_, item);
}

/// Calls find(row, found) for each of the rows, by all threads, and takes what it found.
template <class Find>
Status BitSearchOnDevice::take_rows(const PlaceRange& rows, Find&& find) {
    const std::size_t count = rows.end - rows.begin;
    Execution own(execution_.threads(), execution_);  // whose steps are not the phase's
    const auto take = [&](std::size_t step, unsigned) -> Status {
        std::vector<std::uint32_t> of_queries;
        std::vector<FoundItem> found;
        Neighbors neighbors;
        neighbors.begins.push_back(0);
        const std::size_t end = std::min(count, (step + 1) * kRowsOfStep);
        for (std::size_t row = step * kRowsOfStep; row < end; ++row) {
            found.clear();
            const std::uint32_t query = rows_.numbers[rows.begin + row];
            GPUTEXT_TRY(find(row, query, found));
            if (!stoppable_sort(found.begin(), found.end(), std::less<>(), execution_.stop()))
                return Status::cancelled();
            if (found.size() > parameters_.k) found.resize(parameters_.k);
            of_queries.push_back(query);
            for (const FoundItem& neighbor : found) {
                neighbors.items.push_back(neighbor.item);
                neighbors.distances.push_back(neighbor.distance);
            }
            neighbors.begins.push_back(neighbors.items.size());
        }
        GPUTEXT_TRY(budget_.take(neighbors.items.size() * kBytesOfNeighbor));
        const std::lock_guard lock(mutex_);
        answers_.add(std::move(of_queries), std::move(neighbors));
        return {};
    };
    GPUTEXT_TRY(own.parallel_for((count + kRowsOfStep - 1) / kRowsOfStep, take));
    return execution_.checkpoint(count);
}

// ---- The k nearest ----

Status BitSearchOnDevice::take_nearest(const PlaceRange& rows, std::uint32_t parts,
                                       std::uint32_t k, const std::vector<NearKey>& keys) {
    return take_rows(rows, [&](std::size_t row, std::uint32_t query,
                               std::vector<FoundItem>& found) -> Status {
        std::vector<NearKey> nearest;
        for (const NearKey key : std::span(keys).subspan(row * parts * k, std::size_t{parts} * k))
            if (key != kNoKeyYet) nearest.push_back(key);
        if (nearest.size() > k) {
            std::nth_element(nearest.begin(), nearest.begin() + k, nearest.end());
            nearest.resize(k);
        }
        for (const NearKey key : nearest) {
            const auto item = static_cast<std::uint32_t>(key);
            const double distance = parameters_.metric == BitMetric::hamming
                                        ? static_cast<double>(key >> 32)
                                        : distance_of(query, item);
            if (distance <= parameters_.radius) found.push_back({distance, item});
        }
        return {};
    });
}

Status BitSearchOnDevice::run_nearest() {
    const auto places = static_cast<std::uint32_t>(rows_.places());
    NearestRows nearest{};
    nearest.k = nearest_of_row();
    nearest.capacity = capacity_for(nearest.k);
    std::uint32_t at_once = std::min(
        rows_at_once(), (places + kBlockRows - 1) / kBlockRows * kBlockRows);
    const std::uint64_t of_part = bytes_of_lists(nearest.k);
    nearest.parts = parts_of(at_once);
    while (nearest.parts > 1 && at_once * of_part * nearest.parts > bytes_left_) --nearest.parts;
    if (at_once * of_part > bytes_left_)
        at_once = static_cast<std::uint32_t>(bytes_left_ / of_part / kBlockRows) * kBlockRows;
    DeviceBuffer<NearKey> lists, kept;
    const std::size_t all = std::size_t{at_once} * nearest.parts;
    GPUTEXT_TRY(lists.allocate(all * nearest.capacity, work_.stream));
    GPUTEXT_TRY(kept.allocate(all * nearest.k, work_.stream));
    nearest.lists = lists.data();
    nearest.nearest = kept.data();
    // The host takes what was found of the rows before while the device has the next ones.
    std::vector<NearKey> keys, keys_before;
    PlaceRange before{0, 0};
    for (std::uint32_t at = 0; at < places; at += at_once) {
        const PlaceRange rows{at, std::min(places - at, at_once) + at};
        GPUTEXT_TRY(find_nearest(search_, rows, nearest, work_.stream));
        GPUTEXT_TRY(take_nearest(before, nearest.parts, nearest.k, keys_before));
        keys.resize(std::size_t{rows.end - rows.begin} * nearest.parts * nearest.k);
        GPUTEXT_TRY(ring_.copy_back({reinterpret_cast<std::uint8_t*>(keys.data()),
                                     keys.size() * sizeof(NearKey)},
                                    reinterpret_cast<const std::uint8_t*>(kept.data()),
                                    work_.stream, execution_));
        std::swap(keys, keys_before);
        before = rows;
    }
    return take_nearest(before, nearest.parts, nearest.k, keys_before);
}

// ---- All within a radius ----

Status BitSearchOnDevice::take_within(const PlaceRange& rows, const std::vector<NearPair>& pairs) {
    std::vector<std::uint64_t> begins(rows.end - rows.begin + 2, 0);
    const auto stopped = [&](std::size_t i) {
        return i % kLookEvery == 0 && execution_.stop_requested();
    };
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (stopped(i)) return Status::cancelled();
        ++begins[pairs[i].row - rows.begin + 2];
    }
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<std::uint32_t> of_rows(pairs.size());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        if (stopped(i)) return Status::cancelled();
        of_rows[begins[pairs[i].row - rows.begin + 1]++] = pairs[i].column;
    }
    return take_rows(rows, [&](std::size_t row, std::uint32_t query,
                               std::vector<FoundItem>& found) -> Status {
        for (std::uint64_t i = begins[row]; i < begins[row + 1]; ++i) {
            if (i % (kLookEvery / 64) == 0 && execution_.stop_requested())
                return Status::cancelled();
            const double distance = distance_of(query, of_rows[i]);
            if (distance <= parameters_.radius) found.push_back({distance, of_rows[i]});
        }
        return {};
    });
}

Status BitSearchOnDevice::run_within() {
    const auto places = static_cast<std::uint32_t>(rows_.places());
    // All pairs of one row fit.
    const std::uint64_t capacity =
        std::min(std::max(kMostPairs, std::uint64_t{items_.rows}), bytes_left_ / sizeof(NearPair) - 1);
    DeviceBuffer<NearPair> list;
    DeviceBuffer<unsigned long long> count;
    GPUTEXT_TRY(list.allocate(capacity, work_.stream));
    GPUTEXT_TRY(count.allocate(1, work_.stream));
    std::vector<NearPair> pairs;
    std::uint32_t at_once = rows_at_once();
    for (std::uint32_t at = 0; at < places;) {
        const PlaceRange rows{at, std::min(places - at, at_once) + at};
        unsigned long long found = 0;
        GPUTEXT_TRY(cuda_status(cudaMemsetAsync(count.data(), 0, sizeof found, work_.stream),
                                "beginning to compare bits"));
        GPUTEXT_TRY(find_within(search_, rows, parts_of(rows.end - rows.begin),
                                {list.data(), capacity, count.data()}, work_.stream));
        GPUTEXT_TRY(download_value(count.data(), found, work_.stream, "comparing bits"));
        GPUTEXT_TRY(execution_.checkpoint(0));
        if (found > capacity) {
            at_once = std::max(1u, (rows.end - rows.begin) / 4);
            continue;
        }
        pairs.resize(found);
        if (found > 0)
            GPUTEXT_TRY(ring_.copy_back({reinterpret_cast<std::uint8_t*>(pairs.data()),
                                         found * sizeof(NearPair)},
                                        reinterpret_cast<const std::uint8_t*>(list.data()),
                                        work_.stream, execution_));
        GPUTEXT_TRY(take_within(rows, pairs));
        at = rows.end;
        if (found < capacity / 4) at_once = std::min(rows_at_once(), 2 * at_once);
    }
    return {};
}

}  // namespace

bool has_kernels_for(const NearestBitsParameters& parameters, const Vectors& items) {
    return items.dimensions <= kMostBits &&
           (parameters.k <= kMostNearest || std::isfinite(parameters.radius));
}

Result<Neighbors> nearest_bits(const NearestBitsParameters& parameters, const Vectors& queries,
                               const Vectors& items, const RowKeys& excluded,
                               const DeviceWork& work, UploadRing& ring, Execution& execution) {
    GPUTEXT_TRY(check_nearest_bits(parameters, queries, items, {}, excluded));
    Neighbors answer;
    answer.begins.assign(queries.rows + 1, 0);
    if (queries.rows == 0 || items.rows == 0 || parameters.radius < 0) return answer;
    bool has_product = false;
    GPUTEXT_TRY(has_bit_product(has_product));
    if (!has_product)
        return gputext::nearest_bits(parameters, queries, items, {}, excluded, execution);
    BitSearchOnDevice search(parameters, queries, items, work, ring, execution);
    GPUTEXT_TRY(search.run(excluded, answer));
    return answer;
}

}  // namespace gputext::gpu
