#include "kernels/terms/detail/scores.hpp"

#include <algorithm>

#include "kernels/base/early_launch.cuh"
#include "kernels/terms/detail/ordered_sum.cuh"
#include "kernels/terms/detail/rows.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;
constexpr std::uint32_t kMostQueries = 65535;  // of a launch
constexpr std::uint32_t kBlocks = 2048;        // of a launch, if there is work for them

constexpr unsigned kAhead = 4;               // terms of a lane under way
constexpr std::uint32_t kMostStaged = 2048;  // terms of a query in shared memory

/// A query's terms, by ascending columns.
struct QueryTerms {
    const double* weights;
    const std::uint32_t* columns;
    std::uint32_t count;
};

/// Copies them to shared memory if there is room for so many. By the block, all of which has them
/// after the next barrier.
__device__ QueryTerms stage_terms(const TermQueries& queries, std::uint32_t query,
                                  std::uint32_t room, double* memory) {
    const RowSpan span = span_of_row(queries.rows, query);
    const auto count = static_cast<std::uint32_t>(span.end - span.begin);
    const double* const weights = queries.weights + span.begin;
    const std::uint32_t* const columns = queries.rows.columns + span.begin;
    if (count > room) return {weights, columns, count};
    auto* const staged = reinterpret_cast<std::uint32_t*>(memory + room);
    for (std::uint32_t i = threadIdx.x; i < count; i += kThreads) {
        memory[i] = weights[i];
        staged[i] = columns[i];
    }
    return {memory, staged, count};
}

/// How many of a query's terms are before each of some columns: the places where these are, if the
/// query has them.
__device__ void find_places(const QueryTerms& terms, const std::uint32_t (&columns)[kAhead],
                            std::uint32_t (&places)[kAhead]) {
#pragma unroll
    for (std::uint32_t& place : places) place = 0;
    if (terms.count == 0) return;
    for (std::uint32_t step = 0x80000000u >> __clz(terms.count); step > 0; step /= 2)
#pragma unroll
        for (unsigned n = 0; n < kAhead; ++n)
            if (step <= terms.count - places[n] && terms.columns[places[n] + step - 1] < columns[n])
                places[n] += step;
}

/// The cosine distance, NaN for rows that share no term. By a warp.
template <class T>
__device__ double distance_of(const TermScoreJob& job, const QueryTerms& own, double own_square,
                              std::uint32_t item, double* memory) {
    const RowSpan span = span_of_row(job.items, item);
    const double square = job.items.squares[item];
    const auto* const elements = static_cast<const T*>(job.items.elements);
    OrderedSum products(memory);
    bool shared = false;
    for (std::uint64_t base = span.begin; base < span.end; base += 32 * kAhead) {
        const std::uint64_t first = base + threadIdx.x % 32;
        std::uint32_t columns[kAhead], places[kAhead];
        T counts[kAhead];
#pragma unroll
        for (unsigned n = 0; n < kAhead; ++n) {
            const std::uint64_t at = first + 32 * n;
            columns[n] = at < span.end ? job.items.columns[at] : UINT32_MAX;
            counts[n] = at < span.end ? elements[at] : T{};
        }
        find_places(own, columns, places);
        bool has[kAhead];
        double product[kAhead];
#pragma unroll
        for (unsigned n = 0; n < kAhead; ++n) {
            has[n] = false;
            product[n] = 0;
            if (first + 32 * n >= span.end || places[n] >= own.count ||
                own.columns[places[n]] != columns[n])
                continue;
            const double a = own.weights[places[n]];
            const double b = __dmul_rn(as_double(counts[n]), job.items.factors[columns[n]]);
            has[n] = a != 0 && b != 0;
            product[n] = __dmul_rn(a, b);
        }
#pragma unroll
        for (unsigned n = 0; n < kAhead; ++n) {
            shared |= has[n];
            products.add(has[n], columns[n], product[n]);
        }
    }
    const double sum = products.total();
    if (!__any_sync(~0u, shared)) return nan("");
    const double squares = __dmul_rn(own_square, square);
    const double cosine = __ddiv_rn(sum, __dsqrt_rn(squares));
    return __dsub_rn(1, cosine < -1 ? -1.0 : cosine > 1 ? 1.0 : cosine);
}

/// Blocks of one y take the found items of one query, a warp each. The queries themselves, and
/// which ones are selected, were on the device before the launch before this one. `room`: for so
/// many terms there is shared memory.
template <class T>
__global__ __launch_bounds__(kThreads) void score_found(TermScoreJob job, std::uint32_t first,
                                                        std::uint32_t room) {
    extern __shared__ double memory[];
    __shared__ double sums[kWarps][OrderedSum::size];
    let_next_begin();
    const ListsView& lists = job.lists;
    const std::uint32_t query = job.selection[first + blockIdx.y];
    const QueryTerms own = stage_terms(job.queries, query, room, memory);
    const double own_square = job.queries.rows.squares[query];
    __syncthreads();
    wait_for_previous();
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
            distance = distance_of<T>(job, own, own_square, item, sums[threadIdx.x / 32]);
            ++scored;
        }
        if (threadIdx.x % 32 == 0)
            lists.keys[begin + i] =
                distance <= limit
                    ? ordered_bits(static_cast<std::uint64_t>(__double_as_longlong(distance)))
                    : kNoDistance;
    }
    const bool all = !(least > -INFINITY);
    if (!all && threadIdx.x % 32 == 0 && scored > 0)
        atomicAdd(job.rescored, static_cast<unsigned long long>(scored));
    if (blockIdx.x == 0 && threadIdx.x == 0 && count > kept) {
        atomicAdd(job.found, static_cast<unsigned long long>(count - kept));
        if (all) atomicAdd(job.rescored, static_cast<unsigned long long>(count - kept));
    }
}

}  // namespace

Status score_terms(const TermScoreJob& job, cudaStream_t stream) {
    const std::uint32_t room = std::min(job.most_terms, kMostStaged);
    const std::size_t bytes = room * (sizeof(double) + sizeof(std::uint32_t));
    for (std::uint32_t first = 0; first < job.selection.count; first += kMostQueries) {
        const std::uint32_t queries = std::min(kMostQueries, job.selection.count - first);
        const std::uint32_t most = std::max(1u, blocks_for(job.lists.capacity, kWarps));
        const dim3 blocks(std::clamp(kBlocks / queries, 1u, most), queries);
        GPUTEXT_TRY(with_term_type(job.items.type, [&](auto element) {
            return launch_early("scoring neighbours", score_found<decltype(element)>, blocks,
                                kThreads, bytes, stream, job, first, room);
        }));
    }
    return {};
}

}  // namespace gputext::gpu
