// kernels/terms/detail/dense_terms.hpp - terms of very many items as dense columns, for the tensor
// cores
//
// A posting costs the same whatever its term; a product of halves costs a small part of that, but
// is computed for every item. So terms that more than a few per cent of the items have become dense
// columns of halves, and the rest stay posting lists. What rounding takes from an item or a query
// is a half's error for dense terms, and an integer's for the others
// (kernels/terms/detail/queries.hpp). Products of halves are exact; their sum over n columns may be
// off by (n + 16) 2^-22 times the sum of their magnitudes, which is at most the product of both
// rows' lengths: tensor cores truncate. What they find is rounded to sixteen bits, as the start of
// the integer sums: by at most half of one part in 16383.5.

#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/base/device_buffer.hpp"
#include "kernels/terms/detail/index.hpp"
#include "kernels/terms/detail/queries.hpp"

namespace gputext::gpu {

inline constexpr std::uint32_t kNotDense = UINT32_MAX;
/// What 1 is in a score of dense terms alone, which may be a little above 1.
inline constexpr double kDenseScale = kItemScale / 2;

/// A view of an index' dense terms.
struct DenseTerms {
    std::uint32_t padded = 0;                      // columns, a multiple of 64; 0: no term is dense
    const std::uint32_t* ranks = nullptr;          // by term: its column, or kNotDense
    const __half* rows = nullptr;                  // items * padded
    const unsigned long long* residual = nullptr;  // as TermIndex::residual, with these columns
};

class DenseTermsMemory {
public:
    /// Queries that will be searched for, in all and at a time, and what these may take with the
    /// dense terms.
    struct Plan {
        std::size_t queries, tile, tile_elements, bytes;
    };

    /// Makes those terms dense that save most time, if any do. Waits for the stream. Errors:
    /// out_of_memory, device_error.
    Status build(const TermIndex& index, const Plan& plan, cudaStream_t stream);

    const DenseTerms& view() const { return view_; }

private:
    DeviceBuffer<std::uint32_t> frequencies_, ranks_;
    DeviceBuffer<__half> rows_;
    DeviceBuffer<unsigned long long> residual_;
    DeviceBuffer<std::uint8_t> scratch_;
    DenseTerms view_;
};

/// A view of the queries' side.
struct DenseQueries {
    const std::int32_t* cold_parts = nullptr;  // TermQueries::parts, with 0 for dense terms
    const __half* rows = nullptr;              // queries * padded
    const double* residuals = nullptr;         // as TermQueries::residuals, with these columns
    const double* lengths = nullptr;           // of `rows`
};

class DenseQueriesMemory {
public:
    /// Queries whose products are kept at a time, which is as long as the caches do.
    static constexpr std::uint32_t kMostAtOnce = 2048;

    Status load(const DenseTerms& terms, const TermQueries& queries, cudaStream_t stream);

    const DenseQueries& view() const { return view_; }
    /// Room for scores of kMostAtOnce queries and a tile of items.
    std::int16_t* scores() const { return scores_.data(); }

private:
    DeviceBuffer<std::int32_t> cold_parts_;
    DeviceBuffer<__half> rows_;
    DeviceBuffer<double> residuals_, lengths_;
    DeviceBuffer<std::int16_t> scores_;
    DenseQueries view_;
};

/// The bound for scores that begin with products of dense terms.
TermError dense_error(const DenseTerms& terms, const DenseQueries& queries);

/// Scores, times kDenseScale, of `count` queries from `first` on and items [item, end) of the
/// index: a row of kTermTile for each query.
Status multiply_dense(const DenseTerms& terms, const DenseQueries& queries, std::uint32_t first,
                      std::uint32_t count, std::uint32_t item, std::uint32_t end,
                      std::int16_t* scores, cudaStream_t stream);

}  // namespace gputext::gpu
