// kernels/knn/probing_search.hpp - the nearest rows before each row of a matrix, in clusters that
// the row probes (cpp/knn/probed_clusters.hpp) and in its block, on a device that has all of the
// matrix
//
// Rows lie in half precision, cluster by cluster. A tile of rows is compared with ranges of rows,
// each some times as long as all before it: those of a cluster with the rows of the tile that probe
// it. In between lists keep what may be near by its score; distances are computed once, at the end.
// Then the tile is compared with the rows of its block.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"
#include "cpp/knn/probed_clusters.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/knn/detail/device_rows.hpp"
#include "kernels/knn/detail/fp16_filter.hpp"
#include "kernels/knn/detail/fp16_search.hpp"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {

/// Rows from `exact_rows` on, in blocks of `block_rows`, probe the clusters of these centroids.
struct ProbingRows {
    Vectors centroids;
    std::size_t exact_rows, block_rows;

    std::size_t block_of(std::size_t row) const { return row - (row - exact_rows) % block_rows; }
};

class ProbingSearch {
public:
    /// By Euclidean distance: `k` of the nearest rows, fewer where there are not as many.
    ProbingSearch(std::size_t k, const Vectors& values, const ProbingRows& probing)
        : k_(k), values_(values), probing_(probing) {}
    ProbingSearch(const ProbingSearch&) = delete;

    /// Whether the current device has kernels for this: compute capability 8.0, more than 64
    /// dimensions.
    static bool has_kernels_for(Metric metric, std::size_t k, const Vectors& values);
    /// The fewest bytes of device memory that prepare() can do with. `per_row`: what the caller
    /// takes for each row of a tile.
    std::size_t least_bytes(std::size_t per_row) const;

    /// Finds the clusters of all rows, which are on the device. Requires has_kernels_for().
    /// Errors: cancelled, out_of_memory, device_error.
    Status prepare(const DeviceRows& rows, std::size_t per_row, const DeviceWork& work,
                   Execution& execution);

    /// The end of the tile that begins with this row, at most `end`.
    std::size_t end_of_tile(std::size_t begin, std::size_t end) const;
    /// The most rows that a tile has.
    std::size_t most_rows() const { return tile_rows_; }
    /// Makes lists() those of a tile. Errors: cancelled, out_of_memory, device_error.
    Status search(std::size_t begin, std::size_t end, Execution& execution);

    const NeighborLists& lists() const { return lists_; }

private:
    /// Queries of a tile by the clusters that they probe, those of cluster c from begins[c] on.
    struct Probes {
        DeviceBuffer<std::uint32_t> queries;
        std::vector<std::uint32_t> begins;
    };

    std::size_t probes_of_row() const {
        return std::min(ProbedClusters::probes, probing_.centroids.rows);
    }
    NeighborLists::Shape shape() const;
    NeighborLists::Shape probe_shape() const;
    std::size_t bytes_of_tile_row(std::size_t per_row) const;
    std::size_t bytes_of_rows() const;
    DeviceRows rows_of(std::size_t begin, std::size_t end) const;
    DeviceRows centroids() const;
    GateJob gate_job() const;

    Status assign_rows(Execution& execution);
    Status lay_out_rows();
    Status load_tile(std::size_t begin, std::size_t end);
    Status find_probes(Execution& execution);
    Status list_probes(const QuerySelection& selection, Probes& probes);
    Status search_clusters(std::size_t end, Execution& execution);
    Status search_range(const QuerySelection& selection, const Probes& probes, std::size_t begin,
                        std::size_t end, Execution& execution);
    Status filter(const Probes& probes, std::size_t begin, std::size_t end, Execution& execution);
    Status settle_found(const QuerySelection& selection);
    Status merge(const QuerySelection& selection);
    Status search_block(std::size_t begin, std::size_t end, Execution& execution);

    std::size_t k_;
    const Vectors& values_;
    const ProbingRows probing_;
    DeviceRows rows_;
    Fp16FilterDevice device_;
    std::size_t tile_rows_ = 0;
    cudaStream_t stream_ = nullptr;
    ProbedClusters clusters_;
    DeviceBuffer<float> centroids_;
    DeviceBuffer<std::uint32_t> members_;

    // Of all rows, cluster by cluster
    Fp16SpaceChoice choice_;
    DeviceBuffer<__half> item_rows_;
    DeviceBuffer<Fp16ItemBound> item_bounds_;
    DeviceBuffer<float> largest_;

    // Of a tile
    DeviceQueries tile_;
    DeviceBuffer<double> query_elements_, query_squares_;
    NeighborLists lists_, probe_lists_;
    Probes probes_;
    DeviceBuffer<__half> query_rows_;
    DeviceBuffer<Fp16QueryBound> query_bounds_;
    DeviceBuffer<float2> groups_;
    DeviceBuffer<float> gates_, widths_;
    DeviceBuffer<std::uint32_t> crowded_, counts_;
    DeviceBuffer<Fp16FilterPart> parts_;
    DeviceBuffer<unsigned long long> rescored_;

    // Of a block
    Fp16Search block_;
    std::size_t block_begin_ = SIZE_MAX;
};

}  // namespace gputext::gpu
