// kernels/terms/detail/bounded_terms.hpp - terms of very many items that a filter replaces by a
// bound
//
// They are many of the postings, and weigh little: by Cauchy's inequality they add to a score at
// most the product of the lengths of an item's and of a query's part that consists of them. A byte
// of each item is that length, rounded up. Where no weight is negative, and where a query's such
// part is short beside its gate, the filter adds the bound in place of the postings: a few items
// more are found and scored exactly.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/base/device_buffer.hpp"
#include "kernels/terms/detail/index.hpp"
#include "kernels/terms/detail/queries.hpp"

namespace gputext::gpu {

/// A view of an index' bounded terms.
struct BoundedTerms {
    const std::uint32_t* frequencies = nullptr;  // by term; null: no term is bounded
    std::uint32_t most = 0;                      // terms of more items are bounded
    const std::uint8_t* lengths = nullptr;       // by item, in parts of 255
    const unsigned* negative = nullptr;          // not 0: an item has a negative weight
};

class BoundedTermsMemory {
public:
    static std::size_t bytes(const TermIndex& index);

    /// Errors: out_of_memory, device_error.
    Status build(const TermIndex& index, cudaStream_t stream);
    void clear() { view_ = {}; }

    const BoundedTerms& view() const { return view_; }

private:
    DeviceBuffer<std::uint32_t> frequencies_;
    DeviceBuffer<std::uint8_t> lengths_;
    DeviceBuffer<unsigned> negative_;
    BoundedTerms view_;
};

/// A view of the queries' side.
struct LightQueries {
    const std::int32_t* parts = nullptr;  // TermQueries::parts, with 0 for bounded terms
    const float* lengths = nullptr;       // rounded up; infinity where a weight is negative
};

class LightQueriesMemory {
public:
    static constexpr std::size_t bytes_per_row = sizeof(float);
    static constexpr std::size_t bytes_per_element = sizeof(std::int32_t);

    Status load(const BoundedTerms& terms, const TermQueries& queries, cudaStream_t stream);

    const LightQueries& view() const { return view_; }

private:
    DeviceBuffer<std::int32_t> parts_;
    DeviceBuffer<float> lengths_;
    LightQueries view_;
};

#ifdef __CUDACC__
/// What a part of 255 of an item's length adds to its score at most, for a query whose bounded
/// terms are left out; 0 for one that all terms are summed for.
__device__ inline unsigned light_step(const BoundedTerms& terms, const LightQueries& light,
                                      const TermQueries& queries, std::uint32_t query, float gate) {
    if (terms.frequencies == nullptr || *terms.negative != 0 || !(gate >= 1)) return 0;
    const double most = light.lengths[query] * (kItemScale * queries.scale);
    if (most > gate) return 0;
    return static_cast<unsigned>(ceil(most * (1.0 / 254.99)));
}
#endif

}  // namespace gputext::gpu
