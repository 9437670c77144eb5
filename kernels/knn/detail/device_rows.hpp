// kernels/knn/detail/device_rows.hpp - dense vectors on a device, and the queries' side of a
// distance there

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"

namespace gputext::gpu {

/// A view of rows of a dense matrix; their elements lie on the device.
struct DeviceRows {
    ElementType type = ElementType::float32;
    const void* elements = nullptr;
    std::uint32_t rows = 0;
    std::uint32_t dimensions = 0;

    const std::byte* row_bytes(std::size_t row) const {
        return static_cast<const std::byte*>(elements) + row * dimensions * element_size(type);
    }
};

/// Queries as doubles, ready for distances as cpp/knn/distance.hpp defines them: metric cosine has
/// scaled those that need it. All on the device.
struct DeviceQueries {
    std::uint32_t rows = 0;
    std::uint32_t dimensions = 0;
    const double* elements = nullptr;
    const double* squares = nullptr;      // of a row as it stands here, by the definition's sum
    const std::uint32_t* keys = nullptr;  // as RowKeys of cpp/knn/knn.hpp, or null

    static constexpr std::size_t bytes_per_row(std::size_t dimensions) {
        return (dimensions + 1) * sizeof(double) + sizeof(std::uint32_t);
    }
};

/// Writes rows * dimensions doubles and `rows` squares. O(elements).
Status prepare_queries(Metric metric, const DeviceRows& rows, double* elements, double* squares,
                       cudaStream_t stream);

/// Writes rows of `vectors` times 16 bytes each, zeros behind the last element. O(elements).
Status align_rows(const DeviceRows& rows, std::uint32_t vectors, std::byte* to,
                  cudaStream_t stream);

/// Writes the definition's square of every row, not scaled: it may be infinite or too small.
Status row_squares(const DeviceRows& rows, double* squares, cudaStream_t stream);

}  // namespace gputext::gpu
