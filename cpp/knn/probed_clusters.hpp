// cpp/knn/probed_clusters.hpp - clusters of rows, and which of them each row's neighbors
// are looked for in
//
// Source: Sivic, Zisserman, 2003, Video Google: a text retrieval approach to object matching in
// videos (inverted lists of a quantizer); Jegou, Douze, Schmid, 2011, Product quantization for
// nearest neighbor search (several lists a query). Clusters are those of cpp/knn/k_means.hpp, which
// are defined to the bit, and so are these lists.

#pragma once

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

    /// Dense, distinct rows. No clusters where most of them have the same numbers and differ in the
    /// signs of zeros. Distances of rows and clusters are euclidean. Time: rows * clusters
    /// distances, and those of k_means() on the sample. Memory: 6 bytes a row, and the sample.
    /// Errors: cancelled, out_of_memory.
    Status set(const Vectors& rows, Simd simd, Execution& execution);
    void clear() { *this = {}; }
    bool empty() const { return begins_.empty(); }

    /// The number of clusters, fewer where there are fewer distinct rows.
    std::size_t size() const { return begins_.empty() ? 0 : begins_.size() - 1; }
    std::uint16_t cluster_of(std::size_t row) const { return own_[row]; }
    /// The rows of a cluster, ascending.
    std::span<const std::uint32_t> members(std::size_t cluster) const {
        return std::span(members_).subspan(begins_[cluster],
                                           begins_[cluster + 1] - begins_[cluster]);
    }
    /// The `count` clusters that are nearest to each of the rows, row by row. Errors: the same.
    Result<std::vector<std::uint16_t>> nearest(const Vectors& rows, std::size_t count, Simd simd,
                                               Execution& execution) const;

private:
    std::vector<float> centroids_;
    std::vector<std::uint16_t> own_;
    std::vector<std::uint32_t> members_, begins_;
};

}  // namespace gputext
