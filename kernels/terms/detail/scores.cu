#include "kernels/terms/detail/scores.hpp"

#include <algorithm>

#include "kernels/base/binary_search.cuh"
#include "kernels/base/early_launch.cuh"
#include "kernels/terms/detail/ordered_sum.cuh"
#include "kernels/terms/detail/rows.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;
constexpr std::uint32_t kMostQueries = 65535;  // of a launch
constexpr std::uint32_t kBlocks = 2048;        // of a launch, if there is work for them

/// Where a column stands among a row's, or the row's end.
__device__ std::uint64_t place_of(const std::uint32_t* columns, RowSpan span,
                                  std::uint32_t column) {
    const std::uint64_t place = partition_point(
        span.begin, span.end, [=](std::uint64_t at) { return columns[at] < column; });
    return place < span.end && columns[place] == column ? place : span.end;
}

/// The cosine distance, NaN for rows that share no term. By a warp.
template <class T>
__device__ double distance_of(const TermScoreJob& job, std::uint32_t query, std::uint32_t item,
                              double* memory) {
    const RowSpan own = span_of_row(job.queries.rows, query);
    const RowSpan span = span_of_row(job.items, item);
    OrderedSum products(memory);
    bool shared = false;
    for (std::uint64_t base = span.begin; base < span.end; base += 32) {
        const std::uint64_t at = base + threadIdx.x % 32;
        bool has = false;
        std::uint32_t column = 0;
        double product = 0;
        if (at < span.end) {
            column = job.items.columns[at];
            const std::uint64_t place = place_of(job.queries.rows.columns, own, column);
            if (place < own.end) {
                const double a = job.queries.weights[place];
                const double b = weight_at<T>(job.items, at, column);
                has = a != 0 && b != 0;
                product = __dmul_rn(a, b);
            }
        }
        shared |= has;
        products.add(has, column, product);
    }
    const double sum = products.total();
    if (!__any_sync(~0u, shared)) return nan("");
    const double squares = __dmul_rn(job.queries.rows.squares[query], job.items.squares[item]);
    const double cosine = __ddiv_rn(sum, __dsqrt_rn(squares));
    return __dsub_rn(1, cosine < -1 ? -1.0 : cosine > 1 ? 1.0 : cosine);
}

/// Blocks of one y take the found items of one query, a warp each.
template <class T>
__global__ __launch_bounds__(kThreads) void score_found(TermScoreJob job, std::uint32_t first) {
    __shared__ double sums[kWarps][OrderedSum::size];
    let_next_begin();
    wait_for_previous();
    const ListsView& lists = job.lists;
    const std::uint32_t query = job.selection[first + blockIdx.y];
    const std::size_t begin = std::size_t{query} * lists.capacity;
    const std::uint32_t count = lists.counts[query];
    const std::uint32_t kept = lists.kept[query];
    if (count > lists.capacity) return;
    const double limit = lists.limits[query];
    const float least = job.least != nullptr ? job.least[query] : -INFINITY;
    const unsigned step = light_step(job.bounded, job.light, job.queries, query, job.gates[query]);
    unsigned scored = 0;
    for (std::uint32_t i = kept + blockIdx.x * kWarps + threadIdx.x / 32; i < count;
         i += kWarps * gridDim.x) {
        double distance = nan("");
        const std::uint32_t item = lists.items[begin + i] - job.first_item;
        const auto most = [&] {
            return lists.scores[begin + i] +
                   (step == 0 ? 0 : __uint2float_ru(step * job.bounded.lengths[item]));
        };
        if (!(least > -INFINITY) || !(most() < least)) {
            distance = distance_of<T>(job, query, item, sums[threadIdx.x / 32]);
            ++scored;
        }
        if (threadIdx.x % 32 == 0)
            lists.keys[begin + i] =
                distance <= limit
                    ? ordered_bits(static_cast<std::uint64_t>(__double_as_longlong(distance)))
                    : kNoDistance;
    }
    if (threadIdx.x % 32 == 0 && scored > 0)
        atomicAdd(job.rescored, static_cast<unsigned long long>(scored));
    if (blockIdx.x == 0 && threadIdx.x == 0 && count > kept)
        atomicAdd(job.found, static_cast<unsigned long long>(count - kept));
}

}  // namespace

Status score_terms(const TermScoreJob& job, cudaStream_t stream) {
    for (std::uint32_t first = 0; first < job.selection.count; first += kMostQueries) {
        const std::uint32_t queries = std::min(kMostQueries, job.selection.count - first);
        const std::uint32_t most = std::max(1u, blocks_for(job.lists.capacity, kWarps));
        const dim3 blocks(std::clamp(kBlocks / queries, 1u, most), queries);
        GPUTEXT_TRY(with_term_type(job.items.type, [&](auto element) {
            return launch_early("scoring neighbours", score_found<decltype(element)>, blocks,
                                kThreads, 0, stream, job, first);
        }));
    }
    return {};
}

}  // namespace gputext::gpu
