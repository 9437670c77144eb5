// cpp/knn/detail/cluster_means.hpp - what items of a cluster add to its sums, and what their mean
// is, as cpp/knn/k_means.hpp defines it

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext {

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

}  // namespace gputext
