// kernels/knn/earlier_search.hpp - the nearest rows before each row of a matrix, on a device that
// has all of the matrix
//
// A tile of rows is compared with all rows before it as queries of kernels/knn/knn.hpp are, and
// then with its own rows, of which those that do not come before a row are left out.

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/knn/detail/device_rows.hpp"
#include "kernels/knn/detail/fp16_search.hpp"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {

class EarlierSearch {
public:
    /// `k` of the nearest rows, fewer where there are not as many. `values` are all rows.
    EarlierSearch(Metric metric, std::size_t k, const Vectors& values)
        : metric_(metric), k_(k), values_(values) {}
    EarlierSearch(const EarlierSearch&) = delete;

    static bool has_kernels_for(std::size_t k, const Vectors& values);
    /// The fewest bytes of device memory that prepare() can do with, beside the rows. `per_row`:
    /// what the caller takes for each row of a tile.
    std::size_t least_bytes(std::size_t per_row) const;

    /// `rows` are the values, on the device, at least one. Requires has_kernels_for(). Errors:
    /// those of largest_magnitude(); cancelled, out_of_memory, device_error.
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
    NeighborLists::Shape shape() const;
    std::size_t bytes_of_tile_row(std::size_t per_row, bool fp16) const;
    std::size_t bytes_of_rows(bool fp16) const;
    DeviceRows rows_of(std::size_t begin, std::size_t end) const;

    Metric metric_;
    std::size_t k_;
    const Vectors& values_;
    DeviceRows rows_;
    bool fp16_helps_ = false;
    std::size_t tile_rows_ = 0;
    cudaStream_t stream_ = nullptr;
    NeighborLists lists_;
    Fp16Search fp16_;
    DeviceBuffer<double> squares_, query_elements_, query_squares_;
    DeviceBuffer<unsigned long long> rescored_;
    DeviceQueries tile_;
};

}  // namespace gputext::gpu
