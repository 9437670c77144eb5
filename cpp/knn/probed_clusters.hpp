// cpp/knn/probed_clusters.hpp - clusters of rows, and which of them each row's neighbors
// are looked for in
//
// Source: Sivic, Zisserman, 2003, Video Google: a text retrieval approach to object matching in
// videos (inverted lists of a quantizer); Jegou, Douze, Schmid, 2011, Product quantization for
// nearest neighbor search (several lists a query). Clusters are those of cpp/knn/k_means.hpp, which
// are defined to the bit, and so are these lists.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"

namespace gputext {

class ProbedClusters {
public:
    /// Of so many clusters, the nearest ones of a row are probed: a quarter. An eighth and less
    /// lose neighbors that searches of the index miss.
    static constexpr std::size_t clusters = 512, probes = 128;
    /// Clusters are found in a sample: of so many rows at equal distances.
    static constexpr std::size_t sample = 65536;

    /// Centroids of dense, distinct rows, one after the other: fewer than `clusters` where there
    /// are fewer distinct rows, none where most of them have the same numbers and differ in the
    /// signs of zeros. Time: that of k_means() on the sample. Errors: cancelled, out_of_memory.
    static Result<std::vector<float>> centroids_of(const Vectors& rows, Simd simd,
                                                   Execution& execution);

    /// Dense rows, and at least one centroid. Distances of rows and clusters are euclidean. Time:
    /// rows * clusters distances. Memory: 6 bytes a row. Errors: cancelled, out_of_memory.
    Status set(const Vectors& centroids, const Vectors& rows, Simd simd, Execution& execution);
    /// The same, where it is known which of so many clusters each row is in.
    void set(std::size_t count, std::vector<std::uint16_t> own);

    std::size_t size() const { return begins_.empty() ? 0 : begins_.size() - 1; }
    /// How many of them a row probes.
    std::size_t probes_of_row() const { return std::min(probes, size()); }
    std::uint16_t cluster_of(std::size_t row) const { return own_[row]; }
    /// All rows, cluster by cluster.
    std::span<const std::uint32_t> members() const { return members_; }
    /// Of these, where the rows of a cluster begin.
    std::size_t begin_of(std::size_t cluster) const { return begins_[cluster]; }
    /// The rows of a cluster that come before a row, ascending.
    std::span<const std::uint32_t> members_before(std::size_t cluster, std::size_t row) const;
    /// The `count` clusters that are nearest to each of the rows, row by row. Errors: the same.
    Result<std::vector<std::uint16_t>> nearest(const Vectors& rows, std::size_t count, Simd simd,
                                               Execution& execution) const;

private:
    Vectors centroids_;
    std::vector<std::uint16_t> own_;
    std::vector<std::uint32_t> members_, begins_;
};

}  // namespace gputext
