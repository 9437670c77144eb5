// kernels/knn/detail/clustered_rows.hpp - items on a device, the clusters that they belong to, and
// the sums of these
//
// Distances are those of cpp/knn/distance.hpp and sums those of cpp/knn/k_means.hpp, to the bit:
// half warps compute distances (kernels/knn/exact_distance.cuh), and what is summed are integers.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/knn/detail/device_rows.hpp"

namespace gputext::gpu {

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

/// Sets all clusters to none and all distances to infinity.
Status clear_clusters(const ClusteredRows& items, cudaStream_t stream);

/// Computes the distances to the rows' own centroids, which are among these. O(elements).
Status set_own_distances(Metric metric, const ClusteredRows& items,
                         const ClusterCentroids& centroids, cudaStream_t stream);

/// Gives each row to the nearest of the centroids that were found for it, or of all where more were
/// found than are kept, if that is nearer than its own, or as near and of a lower number. O(found *
/// dimensions).
Status settle_items(Metric metric, const ClusteredRows& items, const ClusterCentroids& centroids,
                    const FoundCentroids& found, ClusterCounts* counts, cudaStream_t stream);

/// Of each cluster the sums of its rows' terms, with the exponent that ClusterMeans has, and the
/// number of its rows.
struct ClusterSumsView {
    std::int64_t* sums;
    std::int64_t* sizes;
    bool directions;
    int exponent;
};

/// Takes rows whose cluster is not the one that they were added to from that one's sums, and adds
/// them to their cluster's. O(rows + elements of those).
Status sum_changes(const ClusteredRows& items, const ClusterSumsView& sums, cudaStream_t stream);

}  // namespace gputext::gpu
