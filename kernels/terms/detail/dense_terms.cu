#include "kernels/terms/detail/dense_terms.hpp"

#include <algorithm>
#include <cmath>
#include <cub/device/device_scan.cuh>

#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/terms/detail/rows.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;

// What one H200 was measured to do in a second. Only the ratios matter, which are similar on other
// devices.
constexpr double kPostings = 5e11;
constexpr double kProducts = 3e14;  // operations
constexpr double kScores = 1e12;    // written and read again, from the caches

/// Parts of all items above which a term may be dense.
constexpr unsigned kShareCount = 8;
struct Shares {
    double at[kShareCount];
};
constexpr Shares kShares = {{0.4, 0.3, 0.2, 0.14, 0.1, 0.07, 0.05, 0.035}};

struct Above {
    unsigned long long terms[kShareCount];
    unsigned long long touched[kShareCount];  // postings, by a query that is like an item
};

__device__ double share_of(std::uint32_t frequency, const TermIndex& index) {
    return static_cast<double>(frequency) / index.items.rows;
}

/// A thread for each term.
__global__ void count_frequencies(TermIndex index, std::uint32_t* frequencies, Above* above,
                                  Shares shares) {
    const std::uint32_t term = blockIdx.x * blockDim.x + threadIdx.x;
    if (term >= index.terms) return;
    const std::uint32_t frequency = frequency_of(index, term);
    frequencies[term] = frequency;
    const double share = share_of(frequency, index);
    for (unsigned i = 0; i < kShareCount; ++i) {
        if (share <= shares.at[i]) continue;
        atomicAdd(&above->terms[i], 1ull);
        atomicAdd(&above->touched[i], static_cast<unsigned long long>(share * frequency));
    }
}

/// ranks[t] is 1 for dense terms, 0 for others.
__global__ void mark_dense(const std::uint32_t* frequencies, TermIndex index, double share,
                           std::uint32_t* ranks) {
    const std::uint32_t term = blockIdx.x * blockDim.x + threadIdx.x;
    if (term < index.terms) ranks[term] = share_of(frequencies[term], index) > share;
}

__global__ void unmark_cold(const std::uint32_t* frequencies, TermIndex index, double share,
                            std::uint32_t* ranks) {
    const std::uint32_t term = blockIdx.x * blockDim.x + threadIdx.x;
    if (term < index.terms && !(share_of(frequencies[term], index) > share))
        ranks[term] = kNotDense;
}

/// What rounding takes from a part of `scale`, which stands in its place; as in the index.
__device__ double rounded_part(double& part, double scale) {
    const double rounded = fmin(fmax(rint(part * scale), 1.0), scale);
    const double taken = part - rounded / scale;
    part = rounded;
    return taken;
}

/// Rounds a part to a half; gives what was lost.
__device__ double rounded_half(double part, __half& half) {
    half = __double2half(part);
    return part - static_cast<double>(__half2float(half));
}

/// A warp for each item.
template <class T>
__global__ __launch_bounds__(kThreads) void fill_items(TermRows items, DenseTerms dense,
                                                       __half* rows, unsigned long long* residual) {
    const std::uint32_t item = blockIdx.x * kWarps + threadIdx.x / 32;
    if (item >= items.rows) return;
    const RowSpan span = span_of_row(items, item);
    const double length = sqrt(items.squares[item]);
    double taken = 0;
    for (std::uint64_t at = span.begin + threadIdx.x % 32; at < span.end; at += 32) {
        const std::uint32_t term = items.columns[at];
        const double weight = weight_at<T>(items, at, term);
        if (weight == 0) continue;
        double part = weight / length;
        double lost;
        if (dense.ranks[term] != kNotDense) {
            lost = rounded_half(part, rows[std::size_t{item} * dense.padded + dense.ranks[term]]);
        } else {
            part = fabs(part);
            lost = rounded_part(part, kItemScale);
        }
        taken += lost * lost;
    }
    taken = warp_sum(taken);
    if (threadIdx.x % 32 == 0)
        atomicMax(residual, static_cast<unsigned long long>(__double_as_longlong(taken)));
}

/// A warp for each query.
__global__ __launch_bounds__(kThreads) void fill_queries(TermQueries queries, DenseTerms dense,
                                                         std::int32_t* cold_parts, __half* rows,
                                                         double* residuals, double* lengths) {
    const std::uint32_t query = blockIdx.x * kWarps + threadIdx.x / 32;
    if (query >= queries.rows.rows) return;
    const RowSpan span = span_of_row(queries.rows, query);
    const double length = sqrt(queries.rows.squares[query]);
    double taken = 0, square = 0;
    for (std::uint64_t at = span.begin + threadIdx.x % 32; at < span.end; at += 32) {
        const std::uint32_t term = queries.rows.columns[at];
        const double weight = queries.weights[at];
        const bool is_dense = weight != 0 && dense.ranks[term] != kNotDense;
        cold_parts[at] = is_dense ? 0 : queries.parts[at];
        if (weight == 0) continue;
        double part = weight / length;
        double lost;
        if (is_dense) {
            __half half;
            lost = rounded_half(part, half);
            rows[std::size_t{query} * dense.padded + dense.ranks[term]] = half;
            const double value = static_cast<double>(__half2float(half));
            square += value * value;
        } else {
            part = fabs(part);
            lost = rounded_part(part, queries.scale);
        }
        taken += lost * lost;
    }
    taken = warp_sum(taken);
    square = warp_sum(square);
    if (threadIdx.x % 32 != 0) return;
    residuals[query] = sqrt(taken);
    lengths[query] = sqrt(square);
}

std::size_t padded_of(std::size_t terms) {
    return (terms + 63) / 64 * 64;
}

std::size_t bytes_of(const TermIndex& index, const DenseTermsMemory::Plan& plan,
                     std::size_t terms) {
    const std::size_t padded = padded_of(terms);
    return (index.items.rows + plan.tile) * padded * sizeof(__half) +
           plan.tile_elements * sizeof(std::int32_t) + plan.tile * 2 * sizeof(double) +
           std::size_t{DenseQueriesMemory::kMostAtOnce} * kTermTile * sizeof(std::int16_t);
}

/// Seconds that dense terms save, or less than 0.
double saved(const TermIndex& index, const DenseTermsMemory::Plan& plan, double terms,
             double touched) {
    const double items = index.items.rows;
    const double columns = static_cast<double>(padded_of(static_cast<std::size_t>(terms)));
    const double queries = static_cast<double>(plan.queries);
    const double multiplied = std::ceil(queries / 128) * 128;
    const double making = items * columns * 2 / kScores + 4e-3;
    return queries * (touched / kPostings - items * 2 / kScores) -
           multiplied * items * columns * 2 / kProducts - making;
}

}  // namespace

Status DenseTermsMemory::build(const TermIndex& index, const Plan& plan, cudaStream_t stream) {
    view_ = {};
    bool multiplies = false;
    GPUTEXT_TRY(has_capability(8, multiplies));
    if (!multiplies) return {};
    const std::size_t small = index.terms * 2 * sizeof(std::uint32_t) + index.terms / 64 + 65536;
    if (index.terms == 0 || index.items.rows < 2 * kTermTile || plan.bytes < small) return {};
    DeviceBuffer<Above> counts;
    GPUTEXT_TRY(counts.allocate(1, stream));
    GPUTEXT_TRY(frequencies_.allocate(index.terms, stream));
    GPUTEXT_TRY(cuda_status(cudaMemsetAsync(counts.data(), 0, sizeof(Above), stream), "clearing"));
    count_frequencies<<<blocks_for(index.terms, kThreads), kThreads, 0, stream>>>(
        index, frequencies_.data(), counts.data(), kShares);
    GPUTEXT_TRY(launched("counting frequent terms"));
    Above above;
    GPUTEXT_TRY(download_value(counts.data(), above, stream, "counting frequent terms"));

    double most = 0;
    std::size_t best = kShareCount;
    for (std::size_t i = 0; i < kShareCount; ++i) {
        const auto terms = static_cast<std::size_t>(above.terms[i]);
        if (terms == 0 || bytes_of(index, plan, terms) + small > plan.bytes) continue;
        const double seconds =
            saved(index, plan, static_cast<double>(terms), static_cast<double>(above.touched[i]));
        if (seconds <= most) continue;
        most = seconds;
        best = i;
    }
    if (best == kShareCount) return {};

    const unsigned blocks = blocks_for(index.terms, kThreads);
    const auto padded = static_cast<std::uint32_t>(padded_of(above.terms[best]));
    GPUTEXT_TRY(ranks_.allocate(index.terms, stream));
    mark_dense<<<blocks, kThreads, 0, stream>>>(frequencies_.data(), index, kShares.at[best],
                                                ranks_.data());
    GPUTEXT_TRY(with_scratch(scratch_, stream, [&](void* space, std::size_t& bytes) {
        return cub::DeviceScan::ExclusiveSum(space, bytes, ranks_.data(), ranks_.data(),
                                             static_cast<std::int64_t>(index.terms), stream);
    }));
    unmark_cold<<<blocks, kThreads, 0, stream>>>(frequencies_.data(), index, kShares.at[best],
                                                 ranks_.data());
    GPUTEXT_TRY(rows_.allocate(std::size_t{index.items.rows} * padded, stream));
    GPUTEXT_TRY(residual_.allocate(1, stream));
    GPUTEXT_TRY(cuda_status(cudaMemsetAsync(rows_.data(), 0, rows_.size() * sizeof(__half), stream),
                            "clearing"));
    GPUTEXT_TRY(cuda_status(
        cudaMemsetAsync(residual_.data(), 0, sizeof(unsigned long long), stream), "clearing"));
    view_ = {padded, ranks_.data(), rows_.data(), residual_.data()};
    with_term_type(index.items.type, [&](auto element) {
        fill_items<decltype(element)>
            <<<blocks_for(index.items.rows, kWarps), kThreads, 0, stream>>>(
                index.items, view_, rows_.data(), residual_.data());
    });
    return launched("filling columns of frequent terms");
}

Status DenseQueriesMemory::load(const DenseTerms& terms, const TermQueries& queries,
                                cudaStream_t stream) {
    const std::size_t rows = queries.rows.rows;
    const auto allocate = [&](auto& buffer, std::size_t size) {
        return size <= buffer.size() ? Status() : buffer.allocate(size, stream);
    };
    GPUTEXT_TRY(allocate(cold_parts_, queries.rows.stored));
    GPUTEXT_TRY(allocate(rows_, rows * terms.padded));
    GPUTEXT_TRY(allocate(residuals_, rows));
    GPUTEXT_TRY(allocate(lengths_, rows));
    GPUTEXT_TRY(allocate(scores_, std::size_t{kMostAtOnce} * kTermTile));
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(rows_.data(), 0, rows * terms.padded * sizeof(__half), stream),
                    "clearing"));
    view_ = {cold_parts_.data(), rows_.data(), residuals_.data(), lengths_.data()};
    if (rows == 0) return {};
    fill_queries<<<blocks_for(rows, kWarps), kThreads, 0, stream>>>(
        queries, terms, cold_parts_.data(), rows_.data(), residuals_.data(), lengths_.data());
    return launched("filling queries' frequent terms");
}

TermError dense_error(const DenseTerms& terms, const DenseQueries& queries) {
    return {queries.residuals, terms.residual, queries.lengths, (terms.padded + 16) * 0x1p-22,
            0.5 / kDenseScale};
}

}  // namespace gputext::gpu
