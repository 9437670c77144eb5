// cpp/knn/cluster_assignment.hpp - the part of k-means that looks at all items
//
// run_k_means() of cpp/knn/detail/k_means_run.hpp takes the decisions of cpp/knn/k_means.hpp: which
// items are first centroids, what an empty cluster takes, what the means are, when to end. An
// assignment does what costs time, where the items are: on the host
// (cpp/knn/detail/host_assignment.hpp), on a device that keeps them (kernels/knn/k_means.hpp), or
// on several of these, each with some of the items (cpp/knn/shared_k_means.hpp).

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"
#include "cpp/knn/k_means.hpp"

namespace gputext {

// ---- Sums and means of a cluster's items, as cpp/knn/k_means.hpp defines them ----

/// B of cpp/knn/k_means.hpp: so many integers below 2^B in magnitude have a sum below 2^62.
int bits_of_terms(std::size_t items);

class ClusterMeans {
public:
    /// `largest` is the largest magnitude of an element of the items.
    ClusterMeans(Metric metric, const Vectors& items, double largest);

    /// Whether it is the items' directions that are summed, as by metric cosine.
    bool directions() const { return directions_; }
    /// e: an element x adds x 2^e, rounded to an integer.
    int exponent() const { return exponent_; }

    /// Overwrites a centroid with its cluster's mean, unless the cluster is empty or the mean has
    /// no direction where directions are summed.
    void mean(std::span<const std::int64_t> sums, std::int64_t size, float* centroid) const;

private:
    bool directions_;
    int exponent_;
};

/// The cluster of every item, and its distance to the centroid. In the beginning no item has a
/// cluster, and all distances are infinite.
struct ItemClusters {
    static constexpr std::uint32_t none = UINT32_MAX;

    std::span<std::uint32_t> clusters;
    std::span<double> distances;
};

/// Of every cluster the sums of its items' terms, an element after the other, and the number of
/// its items.
struct ClusterTotals {
    std::span<const std::int64_t> sums, sizes;
};

class ClusterAssignment {
public:
    virtual ~ClusterAssignment() = default;

    /// Steps of progress that assign() takes.
    virtual std::size_t steps() const = 0;

    /// Compares all items with some more centroids, numbered from `first`, which are rows of the
    /// items' type: an item goes to the nearest of them that is nearer than its own centroid.
    virtual Status add(const Vectors& centroids, std::uint32_t first, Execution& execution) = 0;

    /// Gives each item to the nearest of k centroids, among equally near ones to that of the lowest
    /// number; returns how many items were given another cluster. After add() of k centroids.
    virtual Result<std::uint64_t> assign(const Vectors& centroids, Execution& execution) = 0;

    /// Makes the ItemClusters that the assignment was made with true: what the calls above did to
    /// them may not be seen before.
    virtual Status fetch(Execution& execution) = 0;

    /// An item has been given another cluster, at the distance that it had, in the ItemClusters.
    /// After fetch().
    virtual Status move(std::uint32_t item, std::uint32_t cluster) = 0;

    /// The totals of the clusters as they are; valid until the next call of any function.
    virtual Result<ClusterTotals> totals(Execution& execution) = 0;

    /// Exact distances that were computed so far.
    virtual std::uint64_t rescored() const = 0;
};

/// What an assignment is made of. What is viewed lives longer than the assignment, and so does
/// this.
struct AssignmentTask {
    const KMeansParameters& parameters;
    Vectors items;   // all that there are, or some
    double largest;  // magnitude of an element of all that there are
    const ClusterMeans& means;
    ItemClusters clusters;
};

using UseAssignment = std::function<Status(ClusterAssignment& assignment)>;

/// Makes an assignment, and calls `use` with it, on the thread that all of its functions are called
/// by. Returns what `use` returns, or an error of its own.
using WithAssignment = std::function<Status(const AssignmentTask& task, const UseAssignment& use)>;

}  // namespace gputext
