#include "kernels/knn/k_means.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "cpp/knn/detail/first_centroids.hpp"
#include "cpp/knn/shared_k_means.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/knn/detail/device_rows.hpp"
#include "kernels/knn/detail/fp16_filter.hpp"
#include "kernels/knn/exact_distance.cuh"

namespace gputext::gpu {

// Items on a device, the clusters that they belong to, and the sums of these. Distances are those
// of cpp/knn/distance.hpp and sums those of cpp/knn/k_means.hpp, to the bit: half warps compute
// distances (kernels/knn/exact_distance.cuh), and what is summed are integers.

/// Some rows, and of each the cluster it belongs to, the distance to its centroid, and the cluster
/// whose sums it was added to, none in the beginning. All on the device.
struct ClusteredRows {
    static constexpr std::uint32_t none = UINT32_MAX;

    DeviceRows rows;
    std::uint32_t* clusters = nullptr;
    double* distances = nullptr;
    std::uint32_t* summed = nullptr;

    ClusteredRows part(std::uint32_t begin, std::uint32_t end) const {
        return {{rows.type, rows.row_bytes(begin), end - begin, rows.dimensions},
                clusters + begin,
                distances + begin,
                summed + begin};
    }
};

/// Centroids as prepare_queries() makes them, numbered from `first`.
struct ClusterCentroids {
    DeviceQueries rows;
    std::uint32_t first = 0;

    ClusterCentroids part(std::uint32_t begin, std::uint32_t end) const {
        return {{end - begin, rows.dimensions, rows.elements + std::size_t{begin} * rows.dimensions,
                 rows.squares + begin},
                first + begin};
    }
};

/// Of each row the centroids that may be nearer than its own: their count, and their numbers, of
/// which the first `capacity` are kept.
struct FoundCentroids {
    const std::uint32_t* counts = nullptr;  // null: all may be nearer
    const std::uint32_t* numbers = nullptr;
    std::uint32_t capacity = 0;
};

/// What is counted on the device.
struct ClusterCounts {
    unsigned long long changed;   // rows that were given another cluster
    unsigned long long rescored;  // exact distances
};

/// Of each cluster the sums of its rows' terms, with the exponent that ClusterMeans has, and the
/// number of its rows.
struct ClusterSumsView {
    std::int64_t* sums;
    std::int64_t* sizes;
    bool directions;
    int exponent;
};

namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kRowsPerBlock = kThreads / kHalfWarp;

/// Row of the calling half warp.
__device__ std::uint32_t row_of_half_warp() {
    return blockIdx.x * kRowsPerBlock + threadIdx.x / kHalfWarp;
}

__global__ void clear(ClusteredRows items) {
    const std::uint32_t row = blockIdx.x * kThreads + threadIdx.x;
    if (row >= items.rows.rows) return;
    items.clusters[row] = items.summed[row] = ClusteredRows::none;
    items.distances[row] = INFINITY;
}

/// A row, and its distances to centroids.
template <class T>
struct RowDistances {
    Metric metric;
    const ClusterCentroids& centroids;
    const T* row;

    __device__ RowDistances(Metric of, const ClusteredRows& items, const ClusterCentroids& to,
                            std::uint32_t number)
        : metric(of),
          centroids(to),
          row(static_cast<const T*>(items.rows.elements) +
              std::size_t{number} * items.rows.dimensions) {}

    /// By the half warp, which gets it in all its lanes.
    __device__ double operator()(std::uint32_t centroid) const {
        const DeviceQueries& rows = centroids.rows;
        const std::uint32_t at = centroid - centroids.first;
        const T* const one[] = {row};
        return exact_distance(metric,
                              {rows.elements + std::size_t{at} * rows.dimensions, rows.squares[at]},
                              one, rows.dimensions, half_warp_lanes());
    }
};

/// A half warp for each row.
template <class T>
__global__ __launch_bounds__(kThreads) void own_distances(Metric metric, ClusteredRows items,
                                                          ClusterCentroids centroids) {
    const std::uint32_t row = row_of_half_warp();
    if (row >= items.rows.rows) return;
    const double distance = RowDistances<T>(metric, items, centroids, row)(items.clusters[row]);
    if (threadIdx.x % kHalfWarp == 0) items.distances[row] = distance;
}

template <class T>
__global__ __launch_bounds__(kThreads) void settle(Metric metric, ClusteredRows items,
                                                   ClusterCentroids centroids, FoundCentroids found,
                                                   ClusterCounts* counts) {
    const std::uint32_t row = row_of_half_warp();
    if (row >= items.rows.rows) return;
    const RowDistances<T> distance_to(metric, items, centroids, row);
    const std::uint32_t own = items.clusters[row];
    std::uint32_t count = found.counts == nullptr ? UINT32_MAX : found.counts[row];
    const bool all = found.counts == nullptr || count > found.capacity;
    if (all) count = centroids.rows.rows;
    const std::uint32_t* const numbers = found.numbers + std::size_t{row} * found.capacity;
    std::uint32_t nearest = own;
    double least = items.distances[row];
    unsigned rescored = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t centroid = all ? centroids.first + i : numbers[i];
        if (centroid == own) continue;
        const double distance = distance_to(centroid);
        ++rescored;
        if (distance < least || (distance == least && centroid < nearest)) {
            least = distance;
            nearest = centroid;
        }
    }
    if (threadIdx.x % kHalfWarp != 0) return;
    if (rescored > 0) atomicAdd(&counts->rescored, rescored);
    if (nearest == own) return;
    items.clusters[row] = nearest;
    items.distances[row] = least;
    atomicAdd(&counts->changed, 1ull);
}

__device__ void add_to(std::int64_t* sum, std::int64_t term) {
    atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(term));
}

/// The norm that a row is divided by. `exponent`: of the power of two that the row is multiplied by
/// first, where its square would over- or underflow.
template <class T>
__device__ double norm_of_row(const T* row, std::uint32_t dimensions, int& exponent) {
    const unsigned lanes = half_warp_lanes();
    const auto square_of = [&] {
        return exact_sum(dimensions, lanes, [=](std::uint32_t i) {
            const double element = times_power_of_two(as_double(row[i]), exponent);
            return __dmul_rn(element, element);
        });
    };
    exponent = 0;
    double square = square_of();
    if (square_needs_scale(square) && cosine_exponent(row, dimensions, lanes, exponent))
        square = square_of();
    return __dsqrt_rn(square);
}

template <class T>
__global__ __launch_bounds__(kThreads) void add_changes(ClusteredRows items, ClusterSumsView sums,
                                                        double scale) {
    const std::uint32_t row = row_of_half_warp();
    if (row >= items.rows.rows) return;
    const std::uint32_t from = items.summed[row], to = items.clusters[row];
    if (from == to) return;
    const std::uint32_t dimensions = items.rows.dimensions;
    const T* const elements =
        static_cast<const T*>(items.rows.elements) + std::size_t{row} * dimensions;
    double norm = 1;
    int exponent = 0;
    if (sums.directions) norm = norm_of_row(elements, dimensions, exponent);
    const unsigned lane = threadIdx.x % kHalfWarp;
    for (std::uint32_t i = lane; i < dimensions; i += kHalfWarp) {
        double element = as_double(elements[i]);
        if (sums.directions) element = __ddiv_rn(times_power_of_two(element, exponent), norm);
        const std::int64_t term = __double2ll_rn(__dmul_rn(element, scale));
        add_to(sums.sums + std::size_t{to} * dimensions + i, term);
        if (from != ClusteredRows::none)
            add_to(sums.sums + std::size_t{from} * dimensions + i, -term);
    }
    __syncwarp(half_warp_lanes());
    if (lane != 0) return;
    add_to(sums.sizes + to, 1);
    if (from != ClusteredRows::none) add_to(sums.sizes + from, -1);
    items.summed[row] = to;
}

/// Calls launch with a null pointer to the rows' elements and the number of blocks.
template <class Launch>
Status run(const ClusteredRows& items, const char* operation, Launch&& launch) {
    if (items.rows.rows == 0) return {};
    with_element_type(items.rows.type, [&](auto element) {
        launch(element, blocks_for(items.rows.rows, kRowsPerBlock));
    });
    return launched(operation);
}

template <class Pointer>
using Element = std::remove_const_t<std::remove_pointer_t<Pointer>>;

}  // namespace

/// Sets all clusters to none and all distances to infinity.
Status clear_clusters(const ClusteredRows& items, cudaStream_t stream) {
    if (items.rows.rows == 0) return {};
    clear<<<blocks_for(items.rows.rows, kThreads), kThreads, 0, stream>>>(items);
    return launched("clearing clusters");
}

/// Computes the distances to the rows' own centroids, which are among these. O(elements).
Status set_own_distances(Metric metric, const ClusteredRows& items,
                         const ClusterCentroids& centroids, cudaStream_t stream) {
    return run(items, "comparing items with their centroids", [&](auto element, unsigned blocks) {
        own_distances<Element<decltype(element)>>
            <<<blocks, kThreads, 0, stream>>>(metric, items, centroids);
    });
}

/// Gives each row to the nearest of the centroids that were found for it, or of all where more were
/// found than are kept, if that is nearer than its own, or as near and of a lower number. O(found *
/// dimensions).
Status settle_items(Metric metric, const ClusteredRows& items, const ClusterCentroids& centroids,
                    const FoundCentroids& found, ClusterCounts* counts, cudaStream_t stream) {
    return run(items, "comparing items with centroids", [&](auto element, unsigned blocks) {
        settle<Element<decltype(element)>>
            <<<blocks, kThreads, 0, stream>>>(metric, items, centroids, found, counts);
    });
}

/// Takes rows whose cluster is not the one that they were added to from that one's sums, and adds
/// them to their cluster's. O(rows + elements of those).
Status sum_changes(const ClusteredRows& items, const ClusterSumsView& sums, cudaStream_t stream) {
    const double scale = std::scalbn(1.0, sums.exponent);
    return run(items, "summing clusters", [&](auto element, unsigned blocks) {
        add_changes<Element<decltype(element)>>
            <<<blocks, kThreads, 0, stream>>>(items, sums, scale);
    });
}

namespace {

/// Centroids of an item that a filter may find before all are compared with it.
constexpr std::uint32_t kFound = 32;
/// Centroids that are compared sooner than they are filtered.
constexpr std::uint32_t kFewCentroids = 16;
/// Pairs times dimensions of a launch, filtered and compared in double precision: 20 to 30 ms.
constexpr double kFilteredWork = 8e12, kComparedWork = 5e10;
constexpr std::size_t kSmallBuffers = 1 << 16;
/// Elements that are doubles at a time, while items are converted.
constexpr std::size_t kConvertedElements = std::size_t{1} << 22;

/// Rows of which a pass over items is made at most, in whole groups.
std::uint32_t whole_groups(std::size_t rows, std::size_t most) {
    return static_cast<std::uint32_t>(
        std::min(most, std::max<std::size_t>(1, rows / kGroupQueries) * kGroupQueries));
}

std::uint32_t converted_rows(const Vectors& items) {
    return whole_groups(kConvertedElements / std::max<std::size_t>(1, items.dimensions),
                        items.rows);
}

/// How many bytes an item takes, and how many items are on the device at a time.
struct Plan {
    std::size_t fixed, per_row;
    std::uint32_t tile = 0;

    Plan(const KMeansParameters& parameters, const Vectors& items) {
        const std::size_t d = items.dimensions, element = element_size(items.type);
        const std::size_t centroids = std::max(parameters.k, kMostChosenAtOnce);
        const std::size_t of_item = 2 * sizeof(std::uint32_t) + sizeof(double);
        const std::size_t of_centroid = d * (std::max(element, sizeof(float)) + sizeof(double)) +
                                        sizeof(double) + Fp16Space::padded_of(d) * sizeof(__half) +
                                        sizeof(Fp16ItemBound);
        fixed = items.rows * of_item + centroids * of_centroid +
                parameters.k * (d + 1) * sizeof(std::int64_t) +
                converted_rows(items) * (d + 1) * sizeof(double) + d * sizeof(double) +
                kSmallBuffers;
        per_row = d * element + Fp16Space::padded_of(d) * sizeof(__half) + sizeof(Fp16QueryBound) +
                  sizeof(float2) + sizeof(float) + (1 + kFound) * sizeof(std::uint32_t);
    }

    KMeansBytes bytes(const Vectors& items) const {
        const std::size_t some = std::min<std::size_t>(items.rows, kGroupQueries);
        return {fixed + some * per_row, fixed + items.rows * per_row};
    }
    /// Requires bytes().least.
    void use(std::size_t memory, const Vectors& items) {
        tile = whole_groups((memory - fixed) / per_row, items.rows);
    }
};

/// The clusters of items that a device keeps, in tiles if they do not fit.
class DeviceAssignment : public ClusterAssignment {
public:
    DeviceAssignment(const AssignmentTask& task, const Plan& plan, cudaStream_t stream,
                     UploadRing& ring, const Execution& execution)
        : metric_(task.parameters.metric),
          k_(task.parameters.k),
          items_(task.items),
          plan_(plan),
          means_(task.means),
          answer_(task.clusters),
          stream_(stream),
          ring_(ring),
          copying_(execution.threads(), execution) {}

    Status begin(double largest) {
        const std::size_t n = items_.rows, d = items_.dimensions;
        GPUTEXT_TRY(event_.create());
        GPUTEXT_TRY(clusters_.allocate(n, stream_));
        GPUTEXT_TRY(summed_.allocate(n, stream_));
        GPUTEXT_TRY(distances_.allocate(n, stream_));
        GPUTEXT_TRY(clear_clusters({{items_.type, nullptr, static_cast<std::uint32_t>(n), 0},
                                    clusters_.data(),
                                    distances_.data(),
                                    summed_.data()},
                                   stream_));
        GPUTEXT_TRY(sums_.allocate(k_ * d, stream_));
        GPUTEXT_TRY(sizes_.allocate(k_, stream_));
        GPUTEXT_TRY(counts_.allocate(1, stream_));
        GPUTEXT_TRY(clear(sums_));
        GPUTEXT_TRY(clear(sizes_));
        GPUTEXT_TRY(clear(counts_));
        GPUTEXT_TRY(raw_.allocate(plan_.tile * d * element_size(items_.type), stream_));
        const std::size_t centroids = std::max(k_, kMostChosenAtOnce);
        GPUTEXT_TRY(raw_centroids_.allocate(
            centroids * d * std::max(element_size(items_.type), sizeof(float)), stream_));
        GPUTEXT_TRY(centroid_elements_.allocate(centroids * d, stream_));
        GPUTEXT_TRY(centroid_squares_.allocate(centroids, stream_));
        return begin_filter(largest, centroids);
    }

    std::size_t steps() const override { return (items_.rows + plan_.tile - 1) / plan_.tile; }

    Status add(const Vectors& centroids, std::uint32_t first, Execution& execution) override {
        GPUTEXT_TRY(load_centroids(centroids, first));
        sums_are_behind_ = true;
        return for_each_tile([&] { return settle_by_parts(execution); }, execution);
    }

    Result<std::uint64_t> assign(const Vectors& centroids, Execution& execution) override {
        GPUTEXT_TRY(load_centroids(centroids, 0));
        own_distances_ += items_.rows;
        GPUTEXT_TRY(
            cuda_status(cudaMemsetAsync(&counts_.data()->changed, 0, sizeof seen_.changed, stream_),
                        "clearing a count"));
        GPUTEXT_TRY(for_each_tile(
            [&] {
                GPUTEXT_TRY(set_own_distances(metric_, tile_, centroids_, stream_));
                GPUTEXT_TRY(settle(execution));
                return sum_changes(tile_, sums(), stream_);
            },
            execution));
        GPUTEXT_TRY(download_value(counts_.data(), seen_, stream_, "assigning items"));
        return std::uint64_t{seen_.changed};
    }

    Status fetch(Execution&) override {
        GPUTEXT_TRY(copy_back(answer_.clusters, clusters_));
        return copy_back(answer_.distances, distances_);
    }

    Status move(std::uint32_t item, std::uint32_t cluster) override {
        sums_are_behind_ = true;
        return cuda_status(cudaMemcpyAsync(clusters_.data() + item, &cluster, sizeof cluster,
                                           cudaMemcpyHostToDevice, stream_),
                           "moving an item");
    }

    Result<ClusterTotals> totals(Execution& execution) override {
        if (sums_are_behind_)
            GPUTEXT_TRY(
                for_each_tile([&] { return sum_changes(tile_, sums(), stream_); }, execution));
        sums_are_behind_ = false;
        host_sums_.resize(sums_.size());
        host_sizes_.resize(sizes_.size());
        GPUTEXT_TRY(copy_back(std::span(host_sums_), sums_));
        GPUTEXT_TRY(copy_back(std::span(host_sizes_), sizes_));
        return ClusterTotals{host_sums_, host_sizes_};
    }

    std::uint64_t rescored() const override { return seen_.rescored + own_distances_; }

private:
    template <class T>
    Status clear(const DeviceBuffer<T>& buffer) {
        return cuda_status(cudaMemsetAsync(buffer.data(), 0, buffer.size() * sizeof(T), stream_),
                           "clearing");
    }

    template <class T>
    Status copy_back(std::span<T> to, const DeviceBuffer<T>& from) {
        if (to.empty()) return {};
        return ring_.copy_back({reinterpret_cast<std::uint8_t*>(to.data()), to.size_bytes()},
                               reinterpret_cast<const std::uint8_t*>(from.data()), stream_,
                               copying_);
    }

    ClusterSumsView sums() const {
        return {sums_.data(), sizes_.data(), means_.directions(), means_.exponent()};
    }

    Status begin_filter(double largest, std::size_t centroids) {
        GPUTEXT_TRY(device_.look());
        const std::uint32_t padded = Fp16Space::padded_of(items_.dimensions);
        filtered_ = Fp16SpaceChoice::usable(metric_, items_, largest) && device_.can_filter(padded);
        if (!filtered_) return {};
        GPUTEXT_TRY(choice_.choose(metric_, items_, stream_));
        const std::size_t tile = plan_.tile, some = converted_rows(items_);
        GPUTEXT_TRY(converted_.allocate(some * items_.dimensions, stream_));
        GPUTEXT_TRY(converted_squares_.allocate(some, stream_));
        GPUTEXT_TRY(rows_.allocate(tile * padded, stream_));
        GPUTEXT_TRY(bounds_.allocate(tile, stream_));
        GPUTEXT_TRY(groups_.allocate(blocks_for(tile, kGroupQueries), stream_));
        GPUTEXT_TRY(gates_.allocate(tile, stream_));
        GPUTEXT_TRY(found_counts_.allocate(tile, stream_));
        GPUTEXT_TRY(found_.allocate(tile * kFound, stream_));
        GPUTEXT_TRY(centroid_rows_.allocate(centroids * padded, stream_));
        GPUTEXT_TRY(centroid_bounds_.allocate(centroids, stream_));
        return largest_.allocate(2, stream_);
    }

    Status load_centroids(const Vectors& centroids, std::uint32_t first) {
        const auto k = static_cast<std::uint32_t>(centroids.rows);
        const auto d = static_cast<std::uint32_t>(centroids.dimensions);
        const std::size_t bytes = std::size_t{k} * d * element_size(centroids.type);
        GPUTEXT_TRY(raw_centroids_.upload(
            {reinterpret_cast<const std::uint8_t*>(centroids.elements), bytes}, stream_));
        const DeviceRows rows{centroids.type, raw_centroids_.data(), k, d};
        GPUTEXT_TRY(prepare_queries(metric_, rows, centroid_elements_.data(),
                                    centroid_squares_.data(), stream_));
        centroids_ = {{k, d, centroid_elements_.data(), centroid_squares_.data()}, first};
        loaded_first_ = first;
        filters_ = filtered_ && k >= kFewCentroids;
        if (!filters_) return {};
        return convert_items(choice_.space(), rows, centroid_rows_.data(), centroid_bounds_.data(),
                             largest_.data(), stream_);
    }

    /// Calls work() for each tile, after loading it; first for the tile that is loaded already.
    template <class Work>
    Status for_each_tile(Work&& work, Execution& execution) {
        const std::size_t tiles = steps(), loaded = loaded_ == no_tile ? 0 : loaded_;
        for (std::size_t i = 0; i < tiles; ++i) {
            GPUTEXT_TRY(load((loaded + i) % tiles));
            GPUTEXT_TRY(work());
            GPUTEXT_TRY(execution.checkpoint());
        }
        return {};
    }

    Status load(std::size_t number) {
        const std::size_t begin = number * plan_.tile;
        const std::size_t rows = std::min<std::size_t>(plan_.tile, items_.rows - begin);
        tile_ = {{items_.type, raw_.data(), static_cast<std::uint32_t>(rows),
                  static_cast<std::uint32_t>(items_.dimensions)},
                 clusters_.data() + begin,
                 distances_.data() + begin,
                 summed_.data() + begin};
        if (loaded_ == number) return {};
        loaded_ = no_tile;
        const std::size_t bytes = rows * items_.dimensions * element_size(items_.type);
        if (bytes > 0) {
            GPUTEXT_TRY(event_.hold(ring_.stream(), stream_));
            const auto* from = reinterpret_cast<const std::uint8_t*>(items_.row_bytes(begin));
            GPUTEXT_TRY(ring_.copy(raw_.data(), {from, bytes}, copying_));
            GPUTEXT_TRY(event_.hold(stream_, ring_.stream()));
        }
        if (filtered_) GPUTEXT_TRY(convert_tile());
        loaded_ = number;
        return {};
    }

    Status convert_tile() {
        const std::uint32_t step = converted_rows(items_);
        for (std::uint32_t begin = 0; begin < tile_.rows.rows; begin += step) {
            const DeviceRows some = tile_.part(begin, std::min(tile_.rows.rows, begin + step)).rows;
            GPUTEXT_TRY(prepare_queries(metric_, some, converted_.data(), converted_squares_.data(),
                                        stream_));
            GPUTEXT_TRY(convert_queries(
                choice_.space(),
                {some.rows, some.dimensions, converted_.data(), converted_squares_.data()},
                rows_.data() + std::size_t{begin} * choice_.space().padded, bounds_.data() + begin,
                groups_.data() + begin / kGroupQueries, stream_));
        }
        return {};
    }

    /// As settle(), but where centroids are filtered with as many at a time as there were before:
    /// about one of these is nearer to an item than its own, while of many more than there were
    /// many are, each of which takes an exact distance. So few as the first are not filtered.
    Status settle_by_parts(Execution& execution) {
        if (!filters_) return settle(execution);
        const ClusterCentroids all = centroids_;
        for (std::uint32_t begin = 0, end = 0; begin < all.rows.rows; begin = end) {
            const std::uint32_t before = all.first + begin;
            filters_ = before >= kFewCentroids;
            end = begin + std::min(all.rows.rows - begin, std::max(before, kFewCentroids));
            centroids_ = all.part(begin, end);
            GPUTEXT_TRY(settle(execution));
        }
        centroids_ = all;
        filters_ = true;
        return {};
    }

    /// Gives the tile's items to the centroids that are nearer than their own.
    Status settle(Execution& execution) {
        if (filters_)
            GPUTEXT_TRY(in_parts(
                kFilteredWork, execution,
                [&](std::uint32_t begin, std::uint32_t end) { return filter(begin, end); }));
        return in_parts(kComparedWork, execution, [&](std::uint32_t begin, std::uint32_t end) {
            FoundCentroids found;
            if (filters_)
                found = {found_counts_.data() + begin, found_.data() + std::size_t{begin} * kFound,
                         kFound};
            return settle_items(metric_, tile_.part(begin, end), centroids_, found, counts_.data(),
                                stream_);
        });
    }

    /// Calls launch(begin, end) for parts of the tile that take at most so much work each, where
    /// they are compared with all centroids. A queue of long launches could not be stopped.
    template <class Launch>
    Status in_parts(double work, Execution& execution, Launch&& launch) {
        const std::uint32_t rows = tile_.rows.rows;
        const double of_row =
            static_cast<double>(centroids_.rows.rows) * static_cast<double>(items_.dimensions + 16);
        const std::uint32_t step =
            whole_groups(static_cast<std::size_t>(std::min(1e9, work / of_row)), rows);
        for (std::uint32_t begin = 0; begin < rows; begin += step) {
            GPUTEXT_TRY(launch(begin, std::min(rows, begin + step)));
            if (rows - begin <= step) break;
            GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "assigning items"));
            GPUTEXT_TRY(execution.checkpoint(0));
        }
        return {};
    }

    /// Finds the centroids that may be as near to items [begin, end) of the tile as their own.
    Status filter(std::uint32_t begin, std::uint32_t end) {
        const Fp16Space& space = choice_.space();
        const std::uint32_t rows = end - begin, first = centroids_.first;
        std::uint32_t* const counts = found_counts_.data() + begin;
        GPUTEXT_TRY(cuda_status(cudaMemsetAsync(counts, 0, rows * sizeof *counts, stream_),
                                "clearing counts"));
        Fp16FilterJob job{};
        job.queries = {rows_.data() + std::size_t{begin} * space.padded, bounds_.data() + begin,
                       groups_.data() + begin / kGroupQueries};
        job.rows = rows;
        job.gates = gates_.data() + begin;
        job.items = {centroid_rows_.data(), centroid_bounds_.data(), largest_.data()};
        job.first_item = loaded_first_;
        job.begin = first;
        job.end = first + centroids_.rows.rows;
        job.lists.capacity = kFound;
        job.lists.counts = counts;
        job.lists.items = found_.data() + std::size_t{begin} * kFound;
        GPUTEXT_TRY(set_gates({space, job.queries, rows, tile_.distances + begin, largest_.data(),
                               gates_.data() + begin, nullptr},
                              stream_));
        return run_fp16_filter(device_, job, space.padded, stream_);
    }

    static constexpr std::size_t no_tile = SIZE_MAX;

    const Metric metric_;
    const std::size_t k_;
    const Vectors& items_;
    const Plan plan_;
    const ClusterMeans& means_;
    const gputext::ItemClusters answer_;
    cudaStream_t stream_;
    UploadRing& ring_;
    Execution copying_;  // whose steps are no progress of the operator's

    StreamEvent event_;
    DeviceBuffer<std::uint32_t> clusters_, summed_;
    DeviceBuffer<double> distances_;
    DeviceBuffer<std::int64_t> sums_, sizes_;
    bool sums_are_behind_ = false;
    DeviceBuffer<ClusterCounts> counts_;
    ClusterCounts seen_{};
    std::uint64_t own_distances_ = 0;
    std::vector<std::int64_t> host_sums_, host_sizes_;

    DeviceBuffer<std::uint8_t> raw_;
    std::size_t loaded_ = no_tile;
    ClusteredRows tile_;

    DeviceBuffer<std::uint8_t> raw_centroids_;
    DeviceBuffer<double> centroid_elements_, centroid_squares_;
    ClusterCentroids centroids_;
    std::uint32_t loaded_first_ = 0;  // of those that are loaded; centroids_ may be some of them

    bool filtered_ = false;  // items are converted for the filter
    bool filters_ = false;   // these centroids are filtered
    Fp16FilterDevice device_;
    Fp16SpaceChoice choice_;
    DeviceBuffer<double> converted_, converted_squares_;
    DeviceBuffer<__half> rows_, centroid_rows_;
    DeviceBuffer<Fp16QueryBound> bounds_;
    DeviceBuffer<float2> groups_;
    DeviceBuffer<Fp16ItemBound> centroid_bounds_;
    DeviceBuffer<float> largest_, gates_;
    DeviceBuffer<std::uint32_t> found_counts_, found_;
};

}  // namespace

KMeansBytes k_means_bytes(const KMeansParameters& parameters, const Vectors& items) {
    return Plan(parameters, items).bytes(items);
}

Status with_assignment(const AssignmentTask& task, const UseAssignment& use, const DeviceWork& work,
                       UploadRing& ring, const Execution& execution) {
    Plan plan(task.parameters, task.items);
    const std::size_t least = plan.bytes(task.items).least;
    if (work.bytes < least) return too_little_memory("k-means takes", least, work.bytes);
    plan.use(work.bytes, task.items);
    const auto use_it = [&]() -> Status {
        DeviceAssignment assignment(task, plan, work.stream, ring, execution);
        GPUTEXT_TRY(assignment.begin(task.largest));
        return use(assignment);
    };
    return finish_work(use_it(), work.stream, "finding clusters");
}

Result<KMeans> k_means(const KMeansParameters& parameters, const Vectors& items,
                       const DeviceWork& work, UploadRing& ring, Execution& execution) {
    SharedKMeans shared(parameters, items, 1);
    GPUTEXT_TRY(shared.take_part(
        [&](const AssignmentTask& task, const UseAssignment& use) {
            return with_assignment(task, use, work, ring, execution);
        },
        execution));
    return shared.take_answer();
}

}  // namespace gputext::gpu
