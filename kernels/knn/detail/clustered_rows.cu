#include "kernels/knn/detail/clustered_rows.hpp"

#include <cmath>
#include <type_traits>

#include "kernels/base/launch.hpp"
#include "kernels/knn/exact_distance.cuh"

namespace gputext::gpu {
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

/// A half warp for each row, as below.
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

/// What a row is divided by: the square root of its square, after it was multiplied by a power of
/// two where the square needs it.
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

Status clear_clusters(const ClusteredRows& items, cudaStream_t stream) {
    if (items.rows.rows == 0) return {};
    clear<<<blocks_for(items.rows.rows, kThreads), kThreads, 0, stream>>>(items);
    return launched("clearing clusters");
}

Status set_own_distances(Metric metric, const ClusteredRows& items,
                         const ClusterCentroids& centroids, cudaStream_t stream) {
    return run(items, "comparing items with their centroids", [&](auto element, unsigned blocks) {
        own_distances<Element<decltype(element)>>
            <<<blocks, kThreads, 0, stream>>>(metric, items, centroids);
    });
}

Status settle_items(Metric metric, const ClusteredRows& items, const ClusterCentroids& centroids,
                    const FoundCentroids& found, ClusterCounts* counts, cudaStream_t stream) {
    return run(items, "comparing items with centroids", [&](auto element, unsigned blocks) {
        settle<Element<decltype(element)>>
            <<<blocks, kThreads, 0, stream>>>(metric, items, centroids, found, counts);
    });
}

Status sum_changes(const ClusteredRows& items, const ClusterSumsView& sums, cudaStream_t stream) {
    const double scale = std::scalbn(1.0, sums.exponent);
    return run(items, "summing clusters", [&](auto element, unsigned blocks) {
        add_changes<Element<decltype(element)>>
            <<<blocks, kThreads, 0, stream>>>(items, sums, scale);
    });
}

}  // namespace gputext::gpu
