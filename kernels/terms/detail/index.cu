#include "kernels/terms/detail/index.hpp"

#include <algorithm>
#include <cub/device/device_scan.cuh>

#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/terms/detail/rows.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;

/// A warp for each item. lists[n * terms + t] counts the postings of term t in tile n.
template <class T>
__global__ __launch_bounds__(kThreads) void count_postings(TermRows items, std::uint32_t terms,
                                                           std::uint32_t* lists) {
    const std::uint32_t item = blockIdx.x * kWarps + threadIdx.x / 32;
    if (item >= items.rows) return;
    const RowSpan span = span_of_row(items, item);
    std::uint32_t* const of_tile = lists + std::size_t{item / kTermTile} * terms;
    for (std::uint64_t at = span.begin + threadIdx.x % 32; at < span.end; at += 32) {
        const std::uint32_t term = items.columns[at];
        if (weight_at<T>(items, at, term) != 0) atomicAdd(&of_tile[term], 1u);
    }
}

/// A warp for each item. `lists` are where the next posting of each goes.
template <class T>
__global__ __launch_bounds__(kThreads) void write_postings(TermRows items, std::uint32_t terms,
                                                           std::uint32_t* lists,
                                                           std::uint32_t* postings,
                                                           unsigned long long* residual) {
    const std::uint32_t item = blockIdx.x * kWarps + threadIdx.x / 32;
    if (item >= items.rows) return;
    const RowSpan span = span_of_row(items, item);
    std::uint32_t* const of_tile = lists + std::size_t{item / kTermTile} * terms;
    const double length = sqrt(items.squares[item]);
    double taken = 0;
    for (std::uint64_t at = span.begin + threadIdx.x % 32; at < span.end; at += 32) {
        const std::uint32_t term = items.columns[at];
        const double weight = weight_at<T>(items, at, term);
        if (weight == 0) continue;
        const double part = fabs(weight) / length * kItemScale;
        const double rounded = fmin(fmax(rint(part), 1.0), kItemScale);
        taken += (part - rounded) * (part - rounded);
        const int value = static_cast<int>(weight < 0 ? -rounded : rounded);
        postings[atomicAdd(&of_tile[term], 1u)] =
            item % kTermTile | static_cast<std::uint32_t>(value) << 16;
    }
    taken = warp_sum(taken);
    if (threadIdx.x % 32 == 0)
        atomicMax(residual, static_cast<unsigned long long>(
                                __double_as_longlong(taken / (kItemScale * kItemScale))));
}

/// `tiles * terms` lists, their first element's place before them, and the end of the last.
std::size_t list_count(std::size_t tiles, std::size_t terms) {
    return tiles * terms + 1;
}

}  // namespace

std::size_t TermIndexMemory::bytes(std::size_t tiles, std::size_t terms, std::size_t stored) {
    const std::size_t lists = list_count(tiles, terms);
    const std::size_t scratch = lists / 128 + (std::size_t{1} << 16);  // CUB's, with room to spare
    return (lists + stored) * sizeof(std::uint32_t) + scratch;
}

Status TermIndexMemory::allocate(std::size_t tiles, std::size_t terms, std::size_t stored,
                                 cudaStream_t stream) {
    stream_ = stream;
    terms_ = static_cast<std::uint32_t>(terms);
    GPUTEXT_TRY(begins_.allocate(list_count(tiles, terms), stream));
    GPUTEXT_TRY(postings_.allocate(stored, stream));
    return residual_.allocate(1, stream);
}

Status TermIndexMemory::build(const TermRows& items) {
    const std::uint32_t tiles = blocks_for(items.rows, kTermTile);
    const std::size_t lists = std::size_t{tiles} * terms_;
    // Counts, then begins, then ends of the lists stand one place later than begins do in the end:
    // a list's end is the next one's begin.
    std::uint32_t* const next = begins_.data() + 1;
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(begins_.data(), 0,
                                    list_count(tiles, terms_) * sizeof(std::uint32_t), stream_),
                    "clearing counts"));
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(residual_.data(), 0, sizeof(unsigned long long), stream_),
                    "clearing a bound"));
    view_ = {items, terms_, tiles, begins_.data(), postings_.data(), residual_.data()};
    if (items.rows == 0 || lists == 0) return {};
    return with_term_type(items.type, [&](auto element) {
        using T = decltype(element);
        const unsigned blocks = blocks_for(items.rows, kWarps);
        count_postings<T><<<blocks, kThreads, 0, stream_>>>(items, terms_, next);
        GPUTEXT_TRY(launched("counting terms"));
        GPUTEXT_TRY(with_scratch(scratch_, stream_, [&](void* space, std::size_t& bytes) {
            return cub::DeviceScan::ExclusiveSum(space, bytes, next, next,
                                                 static_cast<std::int64_t>(lists), stream_);
        }));
        write_postings<T><<<blocks, kThreads, 0, stream_>>>(items, terms_, next, postings_.data(),
                                                            residual_.data());
        return launched("indexing terms");
    });
}

}  // namespace gputext::gpu
