// cpp/knn/detail/cluster_sums.hpp - sums of the items of each cluster, as the integers that
// cpp/knn/k_means.hpp defines

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/cluster_assignment.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext {

/// The elements that are summed and averaged: a row's own, or under cosine those of its direction.
class MeanElements {
public:
    MeanElements(Metric metric, const Vectors& items) : metric_(metric), items_(items) {}
    /// Writes `dimensions` doubles. No row of zeros under cosine.
    void copy(std::size_t item, double* out) const;

private:
    Metric metric_;
    const Vectors& items_;
};

class ClusterSums {
public:
    /// The items must live as long.
    ClusterSums(Metric metric, const Vectors& items, const ClusterMeans& means, std::size_t k,
                Simd simd);

    /// Bytes for each item, for each element of the centroids, and for each thread.
    static constexpr std::size_t bytes_of_item = sizeof(std::uint32_t);
    static constexpr std::size_t bytes_of_element = sizeof(std::int64_t);
    static std::size_t bytes_of_thread(std::size_t dimensions);

    /// Makes the sums those of the items in these clusters; looks only at items whose cluster is
    /// another one than the last time. O(items + elements of those). Error: cancelled.
    Status set(std::span<const std::uint32_t> clusters, Execution& execution);

    std::span<const std::int64_t> sums() const { return sums_; }
    std::span<const std::int64_t> sizes() const { return sizes_; }

private:
    using Add = void (*)(const double* row, double scale, std::size_t count, std::int64_t* sums);
    struct Change {
        std::uint32_t cluster;
        std::uint32_t item;
        bool removed;
    };

    std::size_t rows_of_task() const;
    void add(std::span<const Change> run, std::vector<double>& row,
             std::vector<std::int64_t>& sums);

    const Vectors& items_;
    MeanElements elements_;
    double scale_;
    Add add_;
    std::vector<std::uint32_t> summed_;  // by item, the cluster that it was added to
    std::vector<std::int64_t> sums_, sizes_;
};

}  // namespace gputext
