#include "kernels/terms/detail/bounded_terms.hpp"

#include <algorithm>

#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/terms/detail/rows.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;
constexpr double kShare = 0.1;  // of the items, above which a term is bounded

/// A thread for each term.
__global__ void sum_frequencies(TermIndex index, std::uint32_t* frequencies) {
    const std::uint32_t term = blockIdx.x * blockDim.x + threadIdx.x;
    if (term >= index.terms) return;
    frequencies[term] = frequency_of(index, term);
}

/// A warp for each item.
template <class T>
__global__ __launch_bounds__(kThreads) void measure_items(TermRows items, BoundedTerms bounded,
                                                          std::uint8_t* lengths,
                                                          unsigned* negative) {
    const std::uint32_t item = blockIdx.x * kWarps + threadIdx.x / 32;
    if (item >= items.rows) return;
    const RowSpan span = span_of_row(items, item);
    double square = 0;
    bool below = false;
    for (std::uint64_t at = span.begin + threadIdx.x % 32; at < span.end; at += 32) {
        const std::uint32_t term = items.columns[at];
        const double weight = weight_at<T>(items, at, term);
        below |= weight < 0;
        if (bounded.frequencies[term] > bounded.most) square += weight * weight;
    }
    square = warp_sum(square);
    if (__any_sync(~0u, below) && threadIdx.x % 32 == 0) *negative = 1;
    if (threadIdx.x % 32 != 0) return;
    const double length = square == 0 ? 0 : sqrt(square / items.squares[item]) * (1 + 0x1p-30);
    lengths[item] = static_cast<std::uint8_t>(fmin(ceil(length * 254.99), 255.0));
}

/// A warp for each query.
__global__ __launch_bounds__(kThreads) void measure_queries(TermQueries queries,
                                                            BoundedTerms bounded,
                                                            std::int32_t* parts, float* lengths) {
    const std::uint32_t query = blockIdx.x * kWarps + threadIdx.x / 32;
    if (query >= queries.rows.rows) return;
    const RowSpan span = span_of_row(queries.rows, query);
    double square = 0;
    bool below = false;
    for (std::uint64_t at = span.begin + threadIdx.x % 32; at < span.end; at += 32) {
        const double weight = queries.weights[at];
        const bool is_bounded = bounded.frequencies[queries.rows.columns[at]] > bounded.most;
        below |= weight < 0;
        if (is_bounded) square += weight * weight;
        parts[at] = is_bounded ? 0 : queries.parts[at];
    }
    square = warp_sum(square);
    below = __any_sync(~0u, below);
    if (threadIdx.x % 32 != 0) return;
    const double length =
        square == 0 ? 0 : sqrt(square / queries.rows.squares[query]) * (1 + 0x1p-30);
    lengths[query] = below ? INFINITY : __double2float_ru(length);
}

}  // namespace

std::size_t BoundedTermsMemory::bytes(const TermIndex& index) {
    return index.terms * sizeof(std::uint32_t) + std::size_t{index.tiles} * kTermTile + 512;
}

Status BoundedTermsMemory::build(const TermIndex& index, cudaStream_t stream) {
    view_ = {};
    if (index.terms == 0 || index.items.rows == 0) return {};
    const std::size_t padded = std::size_t{index.tiles} * kTermTile;
    GPUTEXT_TRY(frequencies_.allocate(index.terms, stream));
    GPUTEXT_TRY(lengths_.allocate(padded, stream));
    GPUTEXT_TRY(negative_.allocate(1, stream));
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(negative_.data(), 0, sizeof(unsigned), stream), "clearing"));
    GPUTEXT_TRY(cuda_status(cudaMemsetAsync(lengths_.data(), 0, padded, stream), "clearing"));
    sum_frequencies<<<blocks_for(index.terms, kThreads), kThreads, 0, stream>>>(
        index, frequencies_.data());
    GPUTEXT_TRY(launched("counting frequent terms"));
    view_ = {frequencies_.data(),
             static_cast<std::uint32_t>(kShare * static_cast<double>(index.items.rows)),
             lengths_.data(), negative_.data()};
    with_term_type(index.items.type, [&](auto element) {
        measure_items<decltype(element)>
            <<<blocks_for(index.items.rows, kWarps), kThreads, 0, stream>>>(
                index.items, view_, lengths_.data(), negative_.data());
    });
    return launched("measuring frequent terms");
}

Status LightQueriesMemory::load(const BoundedTerms& terms, const TermQueries& queries,
                                cudaStream_t stream) {
    const std::size_t rows = queries.rows.rows, stored = queries.rows.stored;
    if (stored > parts_.size()) GPUTEXT_TRY(parts_.allocate(stored, stream));
    if (rows > lengths_.size()) GPUTEXT_TRY(lengths_.allocate(rows, stream));
    view_ = {parts_.data(), lengths_.data()};
    if (rows == 0) return {};
    measure_queries<<<blocks_for(rows, kWarps), kThreads, 0, stream>>>(
        queries, terms, parts_.data(), lengths_.data());
    return launched("measuring queries' frequent terms");
}

}  // namespace gputext::gpu
