// kernels/terms/detail/rows.hpp - sparse rows of terms on a device

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// A view of some rows of a sparse matrix of type float32 or int32. What a row weighs a term is the
/// element times the term's factor, rounded (cpp/terms/knn.hpp).
struct TermRows {
    ElementType type = ElementType::float32;
    std::uint32_t rows = 0;
    std::uint64_t stored = 0;
    std::uint64_t first = 0;
    const std::uint64_t* begins = nullptr;  // in the matrix, of which `first` elements are not here
    const std::uint32_t* columns = nullptr;
    const void* elements = nullptr;
    const double* factors = nullptr;      // of all terms
    /// Sums of the weights' squares, as distance.hpp has it; of items that are searched for inner
    /// products all are the largest of these, so that "cosines" are inner products by one measure.
    const double* squares = nullptr;
    const std::uint32_t* keys = nullptr;  // of RowKeys, or null
    Metric metric = Metric::cosine;       // or inner_product
};

/// Keeps such rows.
class TermRowsMemory {
public:
    static constexpr std::size_t bytes_per_row =
        sizeof(std::uint64_t) + sizeof(double) + sizeof(std::uint32_t);
    static constexpr std::size_t bytes_per_element = 2 * sizeof(std::uint32_t);

    /// Room for so many rows and elements. Errors of both: out_of_memory, device_error, cancelled.
    Status allocate(std::size_t rows, std::size_t elements, cudaStream_t stream);
    /// Rows [begin, end) and their keys, which may be none. `metric`: as TermRows has it.
    Status load(const Vectors& from, std::size_t begin, std::size_t end,
                std::span<const std::uint32_t> keys, const double* factors, UploadRing& ring,
                Execution& execution, Metric metric = Metric::cosine);

    const TermRows& view() const { return view_; }

private:
    Status copy(void* to, const void* from, std::size_t bytes, UploadRing& ring,
                Execution& execution);

    cudaStream_t stream_ = nullptr;
    StreamEvent event_;
    DeviceBuffer<std::uint64_t> begins_;
    DeviceBuffer<std::uint32_t> columns_, elements_, keys_;
    DeviceBuffer<double> squares_;
    DeviceBuffer<unsigned long long> largest_;  // square: a double's bits
    TermRows view_;
};

}  // namespace gputext::gpu
