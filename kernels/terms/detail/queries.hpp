// kernels/terms/detail/queries.hpp - queries of terms on a device, and the error bound of their
// filter
//
// A query's weights are parts of its length, as an item's in the index, rounded to larger integers.
// With x and y an item's and a query's row of parts, x' and y' what they were rounded to, and R and
// r the lengths of x - x' and y - y', Cauchy's inequality gives |xy - x'y'| <= R|y| + |x'|r
// <= R + (1 + R)r: the error of the filter's score, which is x'y' exactly, as all are integers. So
// is every sum of some of its terms at most (1 + R)(1 + r) times both scales, which is below 2^31.
// The bound also covers 2^-22 for the rounding of scores to floats and of the exact distance.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/base/device_buffer.hpp"
#include "kernels/knn/neighbor_lists.hpp"
#include "kernels/terms/detail/index.hpp"
#include "kernels/terms/detail/rows.hpp"

namespace gputext::gpu {

/// A view of a tile of queries.
struct TermQueries {
    TermRows rows;
    double scale = 0;                     // what a part of 1 is in `parts`
    const double* weights = nullptr;      // by position, as the rows' elements
    const std::int32_t* parts = nullptr;  // rounded; 0 for weights of 0 and for these alone
    const double* residuals = nullptr;    // r, by query
};

class TermQueriesMemory {
public:
    static constexpr std::size_t bytes_per_row = TermRowsMemory::bytes_per_row + sizeof(double);
    static constexpr std::size_t bytes_per_element =
        TermRowsMemory::bytes_per_element + sizeof(double) + sizeof(std::int32_t);

    /// A scale of parts for which no sum overflows, where neither a query nor an item has more than
    /// so many elements: rounding n parts up by less than 1 each makes a row longer by less than
    /// the root of n.
    static double scale_for(std::size_t most_elements);

    /// Errors of all: out_of_memory, device_error, cancelled.
    Status allocate(std::size_t rows, std::size_t elements, double scale, cudaStream_t stream);
    Status load(const Vectors& from, std::size_t begin, std::size_t end,
                std::span<const std::uint32_t> keys, const double* factors, UploadRing& ring,
                Execution& execution);

    const TermQueries& view() const { return view_; }

private:
    cudaStream_t stream_ = nullptr;
    TermRowsMemory rows_;
    DeviceBuffer<double> weights_, residuals_;
    DeviceBuffer<std::int32_t> parts_;
    TermQueries view_;
};

/// How far a filter's scores may be off, by query.
struct TermError {
    const double* residuals;          // r
    const unsigned long long* items;  // R, squared, as TermIndex has it
    const double* lengths = nullptr;  // of what is not summed in integers: dense_terms.hpp
    double per_length = 0;
    double fixed = 0;
};

/// The least score of an item that a filter must not leave out, by query: of all items within the
/// query's limit, or -infinity where these include items that share a term and have no score above
/// 0. Other scores are whole numbers.
struct TermGates {
    TermQueries queries;
    QuerySelection selection;
    TermError error;
    float* gates;
    const double* item_square;  // of all items, where distances are of inner products; else null
};

/// Writes gates for limits by query.
Status set_term_gates(const TermGates& job, const double* limits, cudaStream_t stream);

/// As above, or higher gates, as the `rank`-th largest of `samples` scores by query suggests.
Status guess_term_gates(const TermGates& job, const double* limits, const float* sampled,
                        std::uint32_t samples, std::uint32_t rank, cudaStream_t stream);

/// For lists that only have found items, of which any k are enough: the least score that one of the
/// k nearest may have, or -infinity where scores tell nothing.
Status find_least_scores(const TermGates& gates, const ListsView& lists, float* least,
                         cudaStream_t stream);

}  // namespace gputext::gpu
