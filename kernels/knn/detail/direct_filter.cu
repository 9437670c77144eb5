#include "kernels/knn/detail/direct_filter.hpp"

#include <type_traits>

#include "kernels/base/launch.hpp"
#include "kernels/knn/exact_distance.cuh"

namespace gputext::gpu {
namespace {

enum class Term { square, magnitude, product };

constexpr unsigned kTile = 64;   // queries and items of a block
constexpr unsigned kDepth = 16;  // dimensions in shared memory at a time
constexpr unsigned kEach = 4;    // queries and items of a thread
constexpr unsigned kSide = kTile / kEach;
constexpr unsigned kThreads = kSide * kSide;

/// What a sum is compared with: left out are sums of squares or magnitudes above `most`, and
/// products below least + per_norm * norm of the item.
struct Limit {
    double most = 0;
    double least = 0;
    double per_norm = 0;

    __device__ bool excludes(Term term, double sum, double norm) const {
        if (term == Term::product) return sum < fma(per_norm, norm, least);
        return sum > most;
    }
};

__device__ Limit limit_of(Metric metric, double distance, double query_square,
                          std::uint32_t dimensions) {
    const double error = (dimensions + 64.0) * 0x1p-51;
    const double underflow = (dimensions + 64.0) * 0x1p-1070;
    const double query_norm = sqrt(query_square);
    Limit limit;
    switch (metric) {
        case Metric::euclidean:
            limit.most = distance * distance * (1 + error) + underflow;
            break;
        case Metric::manhattan:
            limit.most = distance * (1 + error) + underflow;
            break;
        case Metric::inner_product:
            limit.least = -distance - underflow;
            limit.per_norm = -error * query_norm;
            break;
        default:
            limit.per_norm = (1 - distance - error) * query_norm;
    }
    return limit;
}

/// NaN, which lets an item pass, where metric cosine scales the item.
__device__ double norm_of(Metric metric, double square) {
    if (metric == Metric::cosine && square_needs_scale(square)) return nan("");
    return sqrt(square);
}

template <Term term>
__device__ void add_term(double& sum, double a, double b) {
    if constexpr (term == Term::product) {
        sum = fma(a, b, sum);
    } else if constexpr (term == Term::square) {
        const double difference = a - b;
        sum = fma(difference, difference, sum);
    } else {
        sum += fabs(a - b);
    }
}

/// A block for 64 queries, which y counts, and 64 items; a thread has every sixteenth of both.
template <Term term, class T>
__global__ __launch_bounds__(kThreads) void filter_directly(DirectFilterInput input,
                                                            QuerySelection selection,
                                                            std::uint32_t first_query,
                                                            std::uint32_t begin, std::uint32_t end,
                                                            ListsView lists) {
    __shared__ double queries[kDepth][kTile + 1];
    __shared__ double items[kDepth][kTile + 1];
    const std::uint32_t dimensions = input.queries.dimensions;
    const std::uint32_t query_base = first_query + blockIdx.y * kTile;
    const std::uint32_t item_base = begin + blockIdx.x * kTile;
    const T* elements = static_cast<const T*>(input.items.elements);
    const unsigned depth = threadIdx.x % kDepth;
    const unsigned row = threadIdx.x / kDepth;
    const unsigned x = threadIdx.x % kSide;
    const unsigned y = threadIdx.x / kSide;

    double sums[kEach][kEach] = {};
    for (std::uint32_t base = 0; base < dimensions; base += kDepth) {
        const std::uint32_t i = base + depth;
#pragma unroll
        for (unsigned r = row; r < kTile; r += kThreads / kDepth) {
            double query = 0;
            double item = 0;
            if (i < dimensions && query_base + r < selection.count)
                query =
                    input.queries.elements[std::size_t{selection[query_base + r]} * dimensions + i];
            if (i < dimensions && item_base + r < end)
                item = as_double(
                    elements[std::size_t{item_base + r - input.first_item} * dimensions + i]);
            queries[depth][r] = query;
            items[depth][r] = item;
        }
        __syncthreads();
#pragma unroll 4
        for (unsigned k = 0; k < kDepth; ++k) {
            double a[kEach];
            double b[kEach];
#pragma unroll
            for (unsigned n = 0; n < kEach; ++n) {
                a[n] = queries[k][y + n * kSide];
                b[n] = items[k][x + n * kSide];
            }
#pragma unroll
            for (unsigned m = 0; m < kEach; ++m)
#pragma unroll
                for (unsigned n = 0; n < kEach; ++n) add_term<term>(sums[m][n], a[m], b[n]);
        }
        __syncthreads();
    }

#pragma unroll
    for (unsigned m = 0; m < kEach; ++m) {
        const std::uint32_t selected = query_base + y + m * kSide;
        if (selected >= selection.count) continue;
        const std::uint32_t query = selection[selected];
        const Limit limit =
            limit_of(input.metric, lists.limits[query], input.queries.squares[query], dimensions);
#pragma unroll
        for (unsigned n = 0; n < kEach; ++n) {
            const std::uint32_t item = item_base + x + n * kSide;
            if (item >= end) continue;
            const double norm =
                term == Term::product
                    ? norm_of(input.metric, input.item_squares[item - input.first_item])
                    : 0.0;
            if (!limit.excludes(term, sums[m][n], norm)) add_found(lists, query, item);
        }
    }
}

template <Term term>
using Terms =
    std::conditional_t<term == Term::square, SquareTerms,
                       std::conditional_t<term == Term::magnitude, MagnitudeTerms, ProductTerms>>;

/// A half warp takes `Items` items beside `Queries` queries at a time.
template <Term term, unsigned Items, unsigned Queries, class T>
__global__ __launch_bounds__(kThreads) void filter_few(DirectFilterInput input,
                                                       QuerySelection selection,
                                                       std::uint32_t begin, std::uint32_t end,
                                                       ListsView lists) {
    constexpr unsigned kPairs = Items * Queries;
    constexpr unsigned kHalfWarps = kThreads / kHalfWarp;
    const std::uint32_t dimensions = input.queries.dimensions;
    const std::uint32_t first_item =
        begin + blockIdx.x * kHalfWarps * Items + threadIdx.x / kHalfWarp;
    const T* rows[kPairs];
#pragma unroll
    for (unsigned n = 0; n < kPairs; ++n) {
        const std::uint32_t item = min(first_item + n / Queries * kHalfWarps, end - 1);
        rows[n] = static_cast<const T*>(input.items.elements) +
                  std::size_t{item - input.first_item} * dimensions;
    }
    for (std::uint32_t first = 0; first < selection.count; first += Queries) {
        const double* queries[kPairs];
#pragma unroll
        for (unsigned n = 0; n < kPairs; ++n) {
            const std::uint32_t selected = min(first + n % Queries, selection.count - 1);
            queries[n] = input.queries.elements + std::size_t{selection[selected]} * dimensions;
        }
        double sum[1];
        exact_sums<Terms<term>>(queries, rows, dimensions, half_warp_lanes(), sum);
        const unsigned own = own_pair<kPairs>();
        const std::uint32_t item = first_item + own / Queries * kHalfWarps;
        const std::uint32_t selected = first + own % Queries;
        if (threadIdx.x % (kHalfWarp / kPairs) != 0 || item >= end || selected >= selection.count)
            continue;
        const std::uint32_t query = selection[selected];
        const Limit limit =
            limit_of(input.metric, lists.limits[query], input.queries.squares[query], dimensions);
        const double norm = term == Term::product
                                ? norm_of(input.metric, input.item_squares[item - input.first_item])
                                : 0.0;
        if (!limit.excludes(term, sum[0], norm)) add_found(lists, query, item);
    }
}

/// Blocks of one y add to one query's list.
__global__ void add_items(QuerySelection selection, std::uint32_t first_query, std::uint32_t begin,
                          std::uint32_t end, ListsView lists) {
    const std::uint32_t query = selection[first_query + blockIdx.y];
    const std::uint32_t kept = lists.kept[query];
    const std::size_t to = std::size_t{query} * lists.capacity + kept;
    for (std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < end - begin;
         i += gridDim.x * blockDim.x)
        lists.items[to + i] = begin + i;
    if (blockIdx.x == 0 && threadIdx.x == 0) lists.counts[query] = kept + (end - begin);
}

constexpr std::uint32_t kMostY = 65535;
constexpr std::uint32_t kFewQueries = 16;  // beside which tiles would be mostly empty

template <Term term>
Status run(const DirectFilterInput& input, const QuerySelection& selection, std::uint32_t begin,
           std::uint32_t end, const ListsView& lists, cudaStream_t stream) {
    if (selection.count <= kFewQueries) {
        const auto run_few = [&](auto items, auto queries) {
            constexpr unsigned kItems = decltype(items)::value;
            constexpr unsigned kQueries = decltype(queries)::value;
            const unsigned blocks = blocks_for(end - begin, kThreads / kHalfWarp * kItems);
            with_element_type(input.items.type, [&](auto element) {
                filter_few<term, kItems, kQueries,
                           std::remove_const_t<std::remove_pointer_t<decltype(element)>>>
                    <<<blocks, kThreads, 0, stream>>>(input, selection, begin, end, lists);
            });
        };
        if (selection.count == 1)
            run_few(std::integral_constant<unsigned, 4>(), std::integral_constant<unsigned, 1>());
        else
            run_few(std::integral_constant<unsigned, 1>(), std::integral_constant<unsigned, 4>());
        return launched("filtering neighbors");
    }
    for (std::uint32_t first = 0; first < selection.count; first += kMostY * kTile) {
        const std::uint32_t queries = std::min(selection.count - first, kMostY * kTile);
        const dim3 blocks(blocks_for(end - begin, kTile), blocks_for(queries, kTile));
        with_element_type(input.items.type, [&](auto element) {
            filter_directly<term, std::remove_const_t<std::remove_pointer_t<decltype(element)>>>
                <<<blocks, kThreads, 0, stream>>>(input, selection, first, begin, end, lists);
        });
    }
    return launched("filtering neighbors");
}

}  // namespace

Status run_direct_filter(const DirectFilterInput& input, const QuerySelection& selection,
                         std::uint32_t begin, std::uint32_t end, const ListsView& lists,
                         cudaStream_t stream) {
    switch (input.metric) {
        case Metric::euclidean:
            return run<Term::square>(input, selection, begin, end, lists, stream);
        case Metric::manhattan:
            return run<Term::magnitude>(input, selection, begin, end, lists, stream);
        default:
            return run<Term::product>(input, selection, begin, end, lists, stream);
    }
}

Status add_all_items(const QuerySelection& selection, std::uint32_t begin, std::uint32_t end,
                     const ListsView& lists, cudaStream_t stream) {
    for (std::uint32_t first = 0; first < selection.count; first += kMostY) {
        const dim3 blocks(std::min(16u, blocks_for(end - begin, 256)),
                          std::min(selection.count - first, kMostY));
        add_items<<<blocks, 256, 0, stream>>>(selection, first, begin, end, lists);
    }
    return launched("listing items");
}

}  // namespace gputext::gpu
