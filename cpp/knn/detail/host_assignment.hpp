// cpp/knn/detail/host_assignment.hpp - assigns the items of k-means to centroids on the host's
// threads

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/cluster_assignment.hpp"
#include "cpp/knn/detail/cluster_sums.hpp"
#include "cpp/knn/detail/distance_filter.hpp"
#include "cpp/knn/detail/filter_space.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext {

// ---- Finds the nearest centroid of many items, exactly ----
//
// The items are the queries of the distance filter (cpp/knn/detail/distance_filter.hpp), converted
// a block at a time, and the centroids are its items, sorted by norm. As the distance to the
// centroid that an item belonged to is known, few scores pass, and exact distances decide between
// them.
//
// Of each item a lower bound of its distance to any other centroid than its own is kept from one
// search to the next (Hamerly, 2010, Making k-means even faster): centroids that move by at most s
// come nearer by at most s, and an item whose own centroid is nearer than that keeps it. Bounds are
// of distances that obey the triangle inequality: euclidean ones, for cosine those of the two
// directions, sqrt(2 D). They are rounded down by far more than all errors of the distances in
// double precision, so that the answer is that of the comparison of all pairs, to the bit.

class NearestCentroid {
public:
    /// `largest` is the largest magnitude of an element. `items` must live as long, and hold no
    /// rows of zeros under cosine.
    NearestCentroid(Metric metric, const Vectors& items, double largest, Simd simd,
                    unsigned threads);

    /// Bytes that a thread and that each element of the centroids takes.
    static std::size_t bytes_of_thread(std::size_t dimensions);
    static constexpr std::size_t bytes_of_element = 2 * sizeof(float);

    /// The centroids to search, numbered from `first`. They must live until the next call.
    /// O(elements) time. Error: cancelled.
    Status set(const Vectors& centroids, std::uint32_t first, Execution& execution);

    /// Items that assign() and move() should be called for at once.
    std::size_t block_rows() const { return block_rows_; }

    /// Consecutive items: of each the cluster, and the distance to its centroid, infinite where it
    /// has no cluster.
    struct Block {
        std::size_t begin, end;
        std::uint32_t* clusters;
        double* distances;
        std::uint64_t changed = 0;   // items that were given another cluster
        std::uint64_t rescored = 0;  // exact distances that were computed
        std::uint64_t searched = 0;  // items that bounds did not decide
        std::uint64_t passed = 0;    // centroids that came into their reach
    };

    /// Compares the items with the centroids that were set, beside those they belong to, which are
    /// not among them. Keeps a cluster where no distance is less. Error: cancelled.
    Status assign(unsigned worker, Block& block, Stop stop);

    /// How far centroids are from where they were when lower bounds were found.
    struct Shifts {
        double largest = 0, second = 0;  // as most_apart() gives them
        std::uint32_t of_largest = 0;

        double of_others(std::uint32_t cluster) const {
            return cluster == of_largest ? second : largest;
        }
    };

    /// The same where the items' clusters are numbers of centroids that were set; computes the
    /// distances to these first. `lower` has a bound for each item, below 0 where there is none;
    /// `reach` is how far beyond the own centroid others are looked for to get one.
    Status move(unsigned worker, Block& block, float* lower, const Shifts& shifts, double reach,
                Stop stop);

    /// The distance of two rows that the bounds above are about, rounded up.
    double most_apart(double distance) const;

private:
    struct Group {
        std::size_t begin_panel, end_panel;
        FilterRow bounds;
    };
    struct Query {
        std::size_t item;
        double most;   // no less than the t of the nearest centroid, see FilterSpace
        double reach;  // the same for what has to be seen
        std::size_t count = 0;
        std::vector<float> scores;
        std::vector<std::uint32_t> positions;
    };
    struct Worker {
        std::optional<Distances> distances;
        std::vector<double> row;
        std::vector<float> converted;
        std::unique_ptr<float[]> panels;
        std::vector<FilterRow> bounds;  // by query
        std::vector<Query> queries;
    };

    Status search(Worker& worker, Block& block, std::size_t count, float* lower, Stop stop);
    Status search_plainly(Worker& worker, Block& block, std::size_t count, Stop stop) const;
    void convert(Worker& worker, std::size_t count) const;
    void keep_possible(const FilterRow& bounds, Query& query) const;
    Status decide(Worker& worker, std::size_t number, Block& block, float* lower, Stop stop) const;
    double least_apart(double distance) const;
    double distance_within(double apart) const;

    /// Calls visit(i, bound) for each entry of the list. Positions ascend, and with them the
    /// groups, of which each has a bound.
    template <class Visit>
    void for_each_passed(const FilterRow& bounds, const Query& query, Visit&& visit) const {
        const std::size_t group_positions = group_panels_ * filter_.items.rows, count = query.count;
        for (std::size_t i = 0; i < count;) {
            const std::size_t group = query.positions[i] / group_positions;
            const auto bound = space_->bound<float>(bounds, groups_[group].bounds);
            while (i < count && query.positions[i] < (group + 1) * group_positions)
                visit(i++, bound);
        }
    }

    Metric metric_;
    const Vectors& items_;
    bool filtered_;
    std::optional<FilterSpace> space_;
    DistanceFilter<float> filter_;
    Simd simd_;
    std::size_t block_rows_, group_panels_;
    Vectors centroids_;
    std::uint32_t first_ = 0;
    std::unique_ptr<float[]> panels_;
    std::size_t panels_room_ = 0;
    std::vector<float> offsets_;
    std::vector<std::uint32_t> order_;  // by position, the centroid's row
    std::vector<Group> groups_;
    std::vector<Worker> workers_;
};

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
