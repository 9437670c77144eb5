// kernels/knn/detail/fp16_marked_lists.cu - fills empty lists with the nearest of the items that
// were marked for them
//
// A block for each query, which makes numbers of bits, copies 128 rows at a time to shared memory,
// and lets each thread compute one row's distance. Where there are no more than 256, warps then
// sort 31 bits of each in registers: 23 that tell most of its distance, and which it is. Only if
// these 23 are the same of two are their distances compared.

#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "kernels/base/early_launch.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/knn/detail/exact_row.cuh"
#include "kernels/knn/detail/fp16_product.cuh"
#include "kernels/knn/detail/list_sort.cuh"
#include "kernels/knn/neighbour_lists.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kPlaceBits = 8;
constexpr unsigned kFew = 1 << kPlaceBits;  // found items, that are sorted sooner than others
// Vectors of four words that a thread reads.
constexpr unsigned kMostVectors = MarkedItems::most_items / 128 / kThreads;

/// Rows, before these a query's words, and after them a list to be sorted. Behind are numbers of
/// items: 16 bits are enough.
struct Layout {
    unsigned pitch;  // of a row, in vectors: an odd number has no two of eight rows in one bank
    unsigned rows_bytes;

    Layout(const MarkedItems& marked, std::uint32_t capacity) {
        pitch = marked.row_vectors | 1;
        const std::size_t list = capacity * (sizeof(std::uint64_t) + sizeof(std::uint32_t));
        const std::size_t words = marked.per_query * sizeof(std::uint32_t);
        rows_bytes =
            static_cast<unsigned>(std::max({kThreads * pitch * sizeof(uint4), list, words}));
    }
    std::size_t bytes(std::uint32_t capacity) const {
        return rows_bytes + capacity * sizeof(std::uint16_t);
    }
};

using CountScan = cub::BlockScan<unsigned, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;

struct Shared {
    double2 query[MarkedItems::most_dimensions / 2];
    std::uint64_t keys[kFew];
    unsigned low, high;  // of keys' upper halves
    unsigned near;       // keys
    CountScan::TempStorage counts;
};

/// The marked item that stands behind `before` others of a vector's words, from first_item on.
__device__ std::uint32_t item_behind(unsigned before, std::uint32_t vector, uint4 words) {
    unsigned word = 0;
    unsigned bits = words.x;
    const auto next = [&](unsigned others) {
        const unsigned here = __popc(bits);
        if (before < here) return false;
        before -= here;
        bits = others;
        ++word;
        return true;
    };
    if (next(words.y) && next(words.z)) next(words.w);
#pragma unroll 1
    for (; before > 0; --before) bits &= bits - 1;
    return MarkedItems::item(4 * vector + word, __clz(static_cast<int>(bits & -bits)));
}

/// Numbers of the marked items, from first_item on, in any order. Returns how many there are; none
/// are written if they are more than the capacity. `memory` holds a query's words for a while.
__device__ unsigned take_marked(const MarkedItems& marked, std::uint32_t capacity,
                                std::uint32_t query, uint4* memory, std::uint16_t* found,
                                Shared& shared) {
    constexpr unsigned kBitBits = 7;  // of 128 bits
    const unsigned vectors = marked.per_query / 4;
    const auto* const from =
        reinterpret_cast<const uint4*>(marked.words + std::size_t{query} * marked.per_query);
    const auto has_none = [=](unsigned v) {  // the warp
        return v * kThreads + threadIdx.x / 32 * 32 >= vectors;
    };
    uint4 own[kMostVectors];
#pragma unroll
    for (unsigned v = 0; v < kMostVectors; ++v) {
        const unsigned at = v * kThreads + threadIdx.x;
        own[v] = at < vectors ? from[at] : uint4{0, 0, 0, 0};
    }
    unsigned counts[kMostVectors] = {};
    unsigned count = 0;
#pragma unroll
    for (unsigned v = 0; v < kMostVectors; ++v) {
        if (has_none(v)) break;
        counts[v] = __popc(own[v].x) + __popc(own[v].y) + __popc(own[v].z) + __popc(own[v].w);
        count += counts[v];
    }
    unsigned at, total;
    CountScan(shared.counts).ExclusiveSum(count, at, total);
    // Threads have few bits or many: each only tells where its own go, and all then look them up.
    if (total > capacity) return total;
#pragma unroll
    for (unsigned v = 0; v < kMostVectors; ++v) {
        if (has_none(v)) break;
        if (counts[v] == 0) continue;
        const unsigned vector = v * kThreads + threadIdx.x;
        memory[vector] = own[v];
#pragma unroll 1
        for (unsigned i = 0; i < counts[v]; ++i)
            found[at++] = static_cast<std::uint16_t>(vector << kBitBits | i);
    }
    __syncthreads();
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < total; i += kThreads) {
        const std::uint32_t vector = found[i] >> kBitBits;
        found[i] = static_cast<std::uint16_t>(
            item_behind(found[i] % (1u << kBitBits), vector, memory[vector]));
    }
    __syncthreads();
    return total;
}

/// A warp's rows, from `found` on. Four lanes copy a row; behind the last one are copies of it.
__device__ void copy_rows(const MarkedItems& marked, const std::uint16_t* found, unsigned count,
                          unsigned pitch, uint4* rows) {
    constexpr unsigned kLanes = 4;
    constexpr unsigned kAtOnce = 3;  // vectors of a row
    const unsigned vectors = marked.row_vectors;
    const unsigned row = threadIdx.x % 32 / kLanes;
    const unsigned first = threadIdx.x % kLanes;
    const uint4* from[kLanes];
#pragma unroll
    for (unsigned r = 0; r < kLanes; ++r)
        from[r] = reinterpret_cast<const uint4*>(marked.rows) +
                  found[min(32 / kLanes * r + row, count - 1)] * vectors + first;
    uint4* to = rows + row * pitch + first;
#pragma unroll 1
    for (unsigned done = first; done < vectors; done += kAtOnce * kLanes) {
#pragma unroll
        for (unsigned v = 0; v < kAtOnce * kLanes; v += kLanes)
            if (done + v < vectors) {
#pragma unroll
                for (unsigned r = 0; r < kLanes; ++r)
                    copy_vector(to + 32 / kLanes * r * pitch + v, from[r] + v, true);
            }
#pragma unroll
        for (const uint4*& next : from) next += kAtOnce * kLanes;
        to += kAtOnce * kLanes;
    }
    end_of_copies();
    wait_for_copies<0>();
    __syncwarp();
}

/// Counts keys, and finds the span of their upper halves. By whole warps.
__device__ void look_at_keys(Shared& shared, std::uint64_t key) {
    const bool valid = key != kNoDistance;
    const auto upper = static_cast<unsigned>(key >> 32);
    unsigned low = valid ? upper : UINT32_MAX;
    unsigned high = valid ? upper : 0;
    const unsigned count = __popc(__ballot_sync(~0u, valid));
    low = warp_min(low);
    high = warp_max(high);
    if (threadIdx.x % 32 != 0) return;
    atomicMin(&shared.low, low);
    atomicMax(&shared.high, high);
    atomicAdd(&shared.near, count);
}

/// A key as one of 2^23 integers in their order, and behind it its place; of no key the largest.
__device__ unsigned step_of_key(const Shared& shared, std::uint64_t key, unsigned place) {
    if (key == kNoDistance) return UINT32_MAX;
    const unsigned bits = 32 - __clz(static_cast<int>(shared.high - shared.low));
    const std::uint64_t above = key - (std::uint64_t{shared.low} << 32);
    return static_cast<unsigned>(above >> (bits + 9)) << kPlaceBits | place;
}

/// Bitonic, over the lanes of a warp.
__device__ unsigned sort_lanes(unsigned value) {
    const unsigned lane = threadIdx.x % 32;
#pragma unroll
    for (unsigned length = 2; length <= 32; length *= 2)
#pragma unroll
        for (unsigned distance = length / 2; distance > 0; distance /= 2) {
            const unsigned other = __shfl_xor_sync(~0u, value, distance);
            const bool least = ((lane & length) == 0) == ((lane & distance) == 0);
            value = least ? min(value, other) : max(value, other);
        }
    return value;
}

/// How many of 32 ordered steps are below a step.
__device__ unsigned steps_below(const unsigned* steps, unsigned step) {
    unsigned below = 0;
#pragma unroll
    for (unsigned half = 16; half > 0; half /= 2)
        if (steps[below + half - 1] < step) below += half;
    return below + (steps[below] < step);
}

/// How many are before a place's own.
__device__ unsigned exact_rank(const Shared& shared, const std::uint16_t* found, unsigned total,
                               unsigned place) {
    const std::uint64_t key = shared.keys[place];
    unsigned rank = 0;
    for (unsigned i = 0; i < total; ++i)
        rank += shared.keys[i] != key ? shared.keys[i] < key : found[i] < found[place];
    return rank;
}

/// Keeps the nearest of at most kFew, whose keys are in shared memory. Warps sort 32 at a time, and
/// look each one's place up in what the others sorted.
__device__ void sort_and_keep_few(Shared& shared, uint4* memory, const std::uint16_t* found,
                                  unsigned total, const MarkedItems& marked, const ListsView& lists,
                                  std::uint32_t query, bool open) {
    auto* const sorted = reinterpret_cast<unsigned*>(memory);
    unsigned* const order = sorted + kFew;
    const unsigned groups = (total + 31) / 32;
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    __syncthreads();
    for (unsigned group = warp; group < groups; group += kWarps) {
        const unsigned place = 32 * group + lane;
        const std::uint64_t key = place < total ? shared.keys[place] : kNoDistance;
        sorted[place] = sort_lanes(step_of_key(shared, key, place));
    }
    __syncthreads();
    for (unsigned group = warp; group < groups; group += kWarps) {
        const unsigned step = sorted[32 * group + lane];
        if (step == UINT32_MAX) continue;
        unsigned rank = lane;
        for (unsigned other = 0; other < groups; ++other)
            if (other != group) rank += steps_below(sorted + 32 * other, step);
        order[rank] = step;
    }
    __syncthreads();
    const unsigned near = shared.near;
    bool same = false;
    for (unsigned i = threadIdx.x + 1; i < near; i += kThreads)
        same |= order[i - 1] >> kPlaceBits == order[i] >> kPlaceBits;
    if (__syncthreads_or(same)) {
        for (unsigned i = threadIdx.x; i < total; i += kThreads)
            if (shared.keys[i] != kNoDistance) order[exact_rank(shared, found, total, i)] = i;
        __syncthreads();
    }
    const unsigned size = min(near, lists.k);
    const std::size_t begin = std::size_t{query} * lists.capacity;
    for (unsigned i = threadIdx.x; i < size; i += kThreads) {
        const unsigned from = order[i] % kFew;
        lists.keys[begin + i] = shared.keys[from];
        lists.items[begin + i] = marked.first_item + found[from];
        if (i + 1 == lists.k && !open) lists.limits[query] = distance_of_key(shared.keys[from]);
    }
    if (threadIdx.x != 0) return;
    lists.kept[query] = size;
    lists.counts[query] = size;
}

/// Keeps the nearest of those whose keys are in the list already.
__device__ void sort_all(uint4* memory, unsigned total, const ListsView& lists, std::uint32_t query,
                         bool open) {
    auto* keys = reinterpret_cast<std::uint64_t*>(memory);
    const SharedList list{keys, reinterpret_cast<std::uint32_t*>(keys + lists.capacity)};
    const std::size_t begin = std::size_t{query} * lists.capacity;
    __syncthreads();
    for (unsigned i = threadIdx.x; i < total; i += kThreads) {
        list.keys[i] = lists.keys[begin + i];
        list.items[i] = lists.items[begin + i];
    }
    __syncthreads();
    sort_and_keep(list, total, lists, query, open);
}

// Blocks of a multiprocessor, at least.
template <Metric Of>
constexpr unsigned kBlocks = Of == Metric::cosine ? 5 : 8;

template <Metric Of, class T>
__global__ __launch_bounds__(kThreads, kBlocks<Of>) void keep_marked(const ListsView lists,
                                                                     const MergeInput input,
                                                                     const QuerySelection selection,
                                                                     const Layout layout, bool open,
                                                                     unsigned long long* rescored) {
    extern __shared__ uint4 memory[];
    __shared__ Shared shared;
    let_next_begin();
    wait_for_previous();
    auto* const found =
        reinterpret_cast<std::uint16_t*>(reinterpret_cast<std::byte*>(memory) + layout.rows_bytes);
    const MarkedItems& marked = input.marked;
    const DeviceQueries& queries = input.queries;
    const std::uint32_t dimensions = queries.dimensions;
    const std::uint32_t query = selection[blockIdx.x];
    const ExactQuery exact{queries.elements + std::size_t{query} * dimensions,
                           queries.squares[query]};
    if (threadIdx.x < MarkedItems::most_dimensions)
        reinterpret_cast<double*>(shared.query)[threadIdx.x] =
            threadIdx.x < dimensions ? exact.elements[threadIdx.x] : 0;
    if (threadIdx.x == 0) {
        shared.low = UINT32_MAX;
        shared.high = 0;
        shared.near = 0;
    }
    const double limit = lists.limits[query];
    const unsigned total = take_marked(marked, lists.capacity, query, memory, found, shared);
    if (total > lists.capacity && threadIdx.x == 0) lists.counts[query] = total;
    if (total > lists.capacity || total == 0) return;

    uint4* const rows = memory + threadIdx.x / 32 * 32 * layout.pitch;
    for (unsigned base = 0; base < total; base += kThreads) {
        const unsigned first = base + threadIdx.x / 32 * 32;  // of the warp
        if (first >= total) break;
        const unsigned own = base + threadIdx.x;
        copy_rows(marked, found + first, min(32u, total - first), layout.pitch, rows);
        const bool is = own < total;
        const double distance = distance_of_row<Of, T>(
            exact, shared.query, rows + threadIdx.x % 32 * layout.pitch, marked.row_vectors,
            dimensions, is, [&](unsigned lane) {
                return static_cast<const T*>(input.items.elements) +
                       (std::size_t{marked.first_item - input.first_item} + found[first + lane]) *
                           dimensions;
            });
        __syncwarp();
        std::uint64_t key = kNoDistance;
        if (is && distance <= limit)
            key = ordered_bits(static_cast<std::uint64_t>(__double_as_longlong(distance)));
        const std::uint32_t item = marked.first_item + found[is ? own : 0];
        if (is && queries.keys != nullptr && queries.keys[query] == input.item_keys[item])
            key = kNoDistance;
        if (total <= kFew) {
            if (is) shared.keys[own] = key;
            look_at_keys(shared, key);
        } else if (is) {
            const std::size_t to = std::size_t{query} * lists.capacity + own;
            lists.keys[to] = key;
            lists.items[to] = item;
        }
    }
    if (total <= kFew)
        sort_and_keep_few(shared, memory, found, total, marked, lists, query, open);
    else
        sort_all(memory, total, lists, query, open);
    if (threadIdx.x == 0) atomicAdd(rescored, static_cast<unsigned long long>(total));
}

template <Metric Of>
Status run(const ListsView& lists, const MergeInput& input, const QuerySelection& selection,
           bool open, unsigned long long* rescored, cudaStream_t stream) {
    const Layout layout(input.marked, lists.capacity);
    const std::size_t bytes = layout.bytes(lists.capacity);
    return with_element_type(input.items.type, [&](auto element) {
        const auto kernel =
            keep_marked<Of, std::remove_const_t<std::remove_pointer_t<decltype(element)>>>;
        GPUTEXT_TRY(allow_shared_bytes(kernel, bytes));
        return launch_early("merging neighbours", kernel, selection.count, kThreads, bytes, stream,
                            lists, input, selection, layout, open, rescored);
    });
}

}  // namespace

std::size_t shared_bytes_for_marks(const MarkedItems& marked, std::uint32_t capacity) {
    return Layout(marked, capacity).bytes(capacity) + sizeof(Shared);
}

Status NeighbourLists::merge_marked(const MergeInput& input, const QuerySelection& selection,
                                    unsigned long long* rescored) {
    const auto of_metric = [&](auto kernels) {
        return kernels(view(), input, selection, shape_.open, rescored, stream_);
    };
    switch (input.metric) {
        case Metric::euclidean:
            return of_metric(run<Metric::euclidean>);
        case Metric::cosine:
            return of_metric(run<Metric::cosine>);
        case Metric::inner_product:
            return of_metric(run<Metric::inner_product>);
        default:
            return of_metric(run<Metric::manhattan>);
    }
}

}  // namespace gputext::gpu
