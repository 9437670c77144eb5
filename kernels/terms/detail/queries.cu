#include "kernels/terms/detail/queries.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/early_launch.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/knn/kth_score.cuh"
#include "kernels/terms/detail/gates.cuh"
#include "kernels/terms/detail/rows.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kBlock = 128;  // of a query

/// A warp for each query.
template <class T>
__global__ __launch_bounds__(kThreads) void round_queries(TermRows rows, double scale,
                                                          double* weights, std::int32_t* parts,
                                                          double* residuals) {
    const std::uint32_t row = blockIdx.x * kWarps + threadIdx.x / 32;
    if (row >= rows.rows) return;
    const RowSpan span = span_of_row(rows, row);
    const double length = sqrt(rows.squares[row]);
    double taken = 0;
    for (std::uint64_t at = span.begin + threadIdx.x % 32; at < span.end; at += 32) {
        const double weight = weight_at<T>(rows, at, rows.columns[at]);
        weights[at] = weight;
        int value = 0;
        if (weight != 0) {
            const double part = fabs(weight) / length * scale;
            const double rounded = fmin(fmax(rint(part), 1.0), scale);
            taken += (part - rounded) * (part - rounded);
            value = static_cast<int>(weight < 0 ? -rounded : rounded);
        }
        parts[at] = value;
    }
    taken = warp_sum(taken);
    if (threadIdx.x % 32 == 0) residuals[row] = sqrt(taken) / scale;
}

__global__ void set_gates(TermGates job, const double* limits) {
    const std::uint32_t selected = blockIdx.x * blockDim.x + threadIdx.x;
    if (selected >= job.selection.count) return;
    const std::uint32_t query = job.selection[selected];
    job.gates[query] = gate_of_limit(job, query, limits[query]);
}

/// A block for each query.
__global__ __launch_bounds__(kBlock) void guess_gates(TermGates job, const double* limits,
                                                      const float* sampled, std::uint32_t samples,
                                                      std::uint32_t rank) {
    extern __shared__ unsigned scores[];
    let_next_begin();
    wait_for_previous();
    const std::uint32_t query = job.selection[blockIdx.x];
    for (std::uint32_t i = threadIdx.x; i < samples; i += kBlock)
        scores[i] = ordered_float(sampled[std::size_t{query} * samples + i]);
    __syncthreads();
    const unsigned kth = about_kth_score<kBlock>(scores, samples, rank);
    if (threadIdx.x == 0) job.gates[query] = GuessedGate(job, query, limits[query]).at(kth);
}

/// A block for each query.
__global__ __launch_bounds__(kBlock) void least_scores(TermGates job, ListsView lists,
                                                       float* least) {
    extern __shared__ unsigned scores[];
    const std::uint32_t query = job.selection[blockIdx.x];
    const std::uint32_t count = lists.counts[query];
    const bool tells = lists.kept[query] == 0 && count > lists.k && count <= lists.capacity &&
                       job.gates[query] >= 1;
    unsigned kth = 0;
    if (tells) {
        for (std::uint32_t i = threadIdx.x; i < count; i += kBlock)
            scores[i] = ordered_float(lists.scores[std::size_t{query} * lists.capacity + i]);
        __syncthreads();
        kth = about_kth_score<kBlock>(scores, count, lists.k);
    }
    if (threadIdx.x != 0) return;
    least[query] = -INFINITY;
    if (kth == 0) return;
    const double width = 2 * error_of(job, query) * scale_of(job);
    least[query] = __double2float_rd(static_cast<double>(float_of_ordered(kth)) - width);
}

}  // namespace

double TermQueriesMemory::scale_for(std::size_t most_elements) {
    constexpr double kMost = 64000;
    const double root = std::sqrt(static_cast<double>(most_elements)) + 1;
    return std::clamp(std::floor(0.99 * 0x1p31 / (kItemScale + root) - root), 1.0, kMost);
}

Status TermQueriesMemory::allocate(std::size_t rows, std::size_t elements, double scale,
                                   cudaStream_t stream) {
    stream_ = stream;
    view_.scale = scale;
    GPUTEXT_TRY(rows_.allocate(rows, elements, stream));
    GPUTEXT_TRY(weights_.allocate(elements, stream));
    GPUTEXT_TRY(parts_.allocate(elements, stream));
    return residuals_.allocate(rows, stream);
}

Status TermQueriesMemory::load(const Vectors& from, std::size_t begin, std::size_t end,
                               std::span<const std::uint32_t> keys, const double* factors,
                               UploadRing& ring, Execution& execution) {
    GPUTEXT_TRY(rows_.load(from, begin, end, keys, factors, ring, execution));
    view_ = {rows_.view(), view_.scale, weights_.data(), parts_.data(), residuals_.data()};
    if (begin == end) return {};
    with_term_type(from.type, [&](auto element) {
        round_queries<decltype(element)><<<blocks_for(end - begin, kWarps), kThreads, 0, stream_>>>(
            view_.rows, view_.scale, weights_.data(), parts_.data(), residuals_.data());
    });
    return launched("weighing queries");
}

Status set_term_gates(const TermGates& job, const double* limits, cudaStream_t stream) {
    if (job.selection.count == 0) return {};
    set_gates<<<blocks_for(job.selection.count, kThreads), kThreads, 0, stream>>>(job, limits);
    return launched("setting gates");
}

Status guess_term_gates(const TermGates& job, const double* limits, const float* sampled,
                        std::uint32_t samples, std::uint32_t rank, cudaStream_t stream) {
    if (job.selection.count == 0) return {};
    const std::size_t bytes = samples * sizeof(unsigned);
    GPUTEXT_TRY(allow_shared_bytes(guess_gates, bytes));
    return launch_early("guessing gates", guess_gates, job.selection.count, kBlock, bytes, stream,
                        job, limits, sampled, samples, rank);
}

Status find_least_scores(const TermGates& gates, const ListsView& lists, float* least,
                         cudaStream_t stream) {
    if (gates.selection.count == 0) return {};
    const std::size_t bytes = lists.capacity * sizeof(unsigned);
    GPUTEXT_TRY(allow_shared_bytes(least_scores, bytes));
    least_scores<<<gates.selection.count, kBlock, bytes, stream>>>(gates, lists, least);
    return launched("looking for the least score");
}

}  // namespace gputext::gpu
