// cpp/knn/detail/host_assignment.hpp - assigns the items of k-means to centroids on the host's
// threads

#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/knn/detail/cluster_assignment.hpp"
#include "cpp/knn/detail/cluster_sums.hpp"
#include "cpp/knn/detail/nearest_centroid.hpp"

namespace gputext {

class HostAssignment : public ClusterAssignment {
public:
    /// `threads` is the most of any execution that its functions are called with.
    HostAssignment(const KMeansParameters& parameters, const Vectors& items, double largest,
                   const ClusterMeans& means, ItemClusters clusters, unsigned threads);

    /// Bytes that are taken beside the items.
    static std::uint64_t bytes(const KMeansParameters& parameters, const Vectors& items,
                               unsigned threads);

    std::size_t steps() const override { return blocks(); }
    Status add(const Vectors& centroids, std::uint32_t first, Execution& execution) override;
    Result<std::uint64_t> assign(const Vectors& centroids, Execution& execution) override;
    Status fetch(Execution&) override { return {}; }
    Status move(std::uint32_t item, std::uint32_t cluster) override;
    Result<ClusterTotals> totals(Execution& execution) override;
    std::uint64_t rescored() const override { return rescored_; }

private:
    std::size_t blocks() const;
    NearestCentroid::Block block(std::size_t number);
    Status begin_bounds(Stop stop);
    Status set_shifts(const Vectors& centroids, NearestCentroid::Shifts& shifts,
                      Execution& execution) const;

    Metric metric_;
    Simd simd_;
    const Vectors& items_;
    ItemClusters clusters_;
    NearestCentroid nearest_;
    ClusterSums sums_;
    std::vector<float> lower_;      // by item, see NearestCentroid
    std::vector<float> centroids_;  // of the last assign()
    double most_reach_ = 0;
    std::atomic<std::uint64_t> rescored_{0};
};

}  // namespace gputext
