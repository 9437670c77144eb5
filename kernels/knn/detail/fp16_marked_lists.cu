// kernels/knn/detail/fp16_marked_lists.cu - fills empty lists with the nearest of the items that
// were marked for them
//
// A team makes numbers of a query's bits, copies 32 rows a warp to shared memory, and lets each
// lane compute one row's distance. Where there are no more than 256, warps then sort 31 bits of
// each in registers: 23 that tell most of its distance, and which it is. Only if these 23 are the
// same of two are their distances compared. A team is a warp, so that many queries are under way,
// whose waits for memory overlap; or a block, for more than 256 items of a query, and for few
// queries.

#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "kernels/base/early_launch.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/knn/detail/fp16_product.cuh"
#include "kernels/knn/detail/list_sort.cuh"
#include "kernels/knn/exact_distance.cuh"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {

// Distances of cpp/knn/distance.hpp by one thread a row, to the bit.
//
// A thread keeps the definition's sixteen partial sums in registers and adds them as its tree does.
// Rows of few dimensions cost less this way than in half warps (kernels/knn/exact_distance.cuh),
// whose lanes have little to do beside passing sums around. Rows lie in shared memory, as vectors
// of 16 bytes with zeros behind the last element: they add zeros, which change nothing.

/// Adds sums j and j + Left for j < Left.
template <unsigned Left, unsigned Sums>
__device__ void add_upper_half(double (&sums)[kHalfWarp][Sums]) {
#pragma unroll
    for (unsigned j = 0; j < Left; ++j)
#pragma unroll
        for (unsigned s = 0; s < Sums; ++s) sums[j][s] = __dadd_rn(sums[j][s], sums[j + Left][s]);
}

/// The definition's sums. `query` has as many elements as the row's vectors.
template <class Terms, class T>
__device__ void sums_of_row(const double2* query, const uint4* row, unsigned vectors,
                            double (&own)[Terms::sums]) {
    constexpr unsigned kElements = sizeof(uint4) / sizeof(T);
    constexpr unsigned kAtOnce = kHalfWarp / kElements;
    double sums[kHalfWarp][Terms::sums];
#pragma unroll
    for (auto& partial : sums)
#pragma unroll
        for (double& sum : partial) sum = 0;
    for (unsigned first = 0; first < vectors; first += kAtOnce) {
#pragma unroll
        for (unsigned v = 0; v < kAtOnce; ++v) {
            if (first + v >= vectors) break;
            const uint4 words = row[first + v];
            T elements[kElements];
            memcpy(elements, &words, sizeof words);
#pragma unroll
            for (unsigned e = 0; e < kElements; e += 2) {
                const double2 two = query[((first + v) * kElements + e) / 2];
                Terms::add(two.x, as_double(elements[e]), sums[v * kElements + e]);
                Terms::add(two.y, as_double(elements[e + 1]), sums[v * kElements + e + 1]);
            }
        }
    }
    add_upper_half<8>(sums);
    add_upper_half<4>(sums);
    add_upper_half<2>(sums);
    add_upper_half<1>(sums);
#pragma unroll
    for (unsigned s = 0; s < Terms::sums; ++s) own[s] = sums[0][s];
}

/// Only with float64 may sums be out of range: see cpp/knn/distance.hpp.
template <class T>
inline constexpr bool needs_second_looks = std::is_same_v<T, double>;

/// Replaces the results of the lanes that ask for it. `of` is called by both half warps of a whole
/// warp, for a lane.
template <class Of>
__device__ void replace_rows(bool again, double& own, Of&& of) {
    for (unsigned asking = __ballot_sync(~0u, again); asking != 0; asking &= asking - 1) {
        const unsigned lane = __ffs(static_cast<int>(asking)) - 1;
        const double result = of(lane);
        if (threadIdx.x % 32 == lane) own = result;
    }
}

/// The distance of each lane's row; NaN where there is none. Called by whole warps. `elements` is
/// the query as vectors are, `raw(lane)` a lane's row in device memory; `is`: whether the lane has
/// a row at all, and its result a meaning.
template <Metric Of, class T, class Raw>
__device__ double distance_of_row(const ExactQuery& query, const double2* elements,
                                  const uint4* row, unsigned vectors, std::uint32_t dimensions,
                                  bool is, Raw&& raw) {
    const unsigned lanes = half_warp_lanes();
    double distance = 0;
    if constexpr (Of == Metric::euclidean) {
        double sum[1];
        sums_of_row<SquareTerms, T>(elements, row, vectors, sum);
        distance = __dsqrt_rn(sum[0]);
        if constexpr (needs_second_looks<T>)
            replace_rows(
                is && !(sum[0] >= 0x1p-900 && sum[0] <= 0x1p1000), distance, [&](unsigned lane) {
                    const bool large = __shfl_sync(~0u, sum[0] > 1, lane);
                    return scaled_euclidean(large, query.elements, raw(lane), dimensions, lanes);
                });
    } else if constexpr (Of == Metric::manhattan) {
        double sum[1];
        sums_of_row<MagnitudeTerms, T>(elements, row, vectors, sum);
        distance = sum[0];
    } else if constexpr (Of == Metric::inner_product) {
        double sum[1];
        sums_of_row<ProductTerms, T>(elements, row, vectors, sum);
        distance = __dsub_rn(0, sum[0]);
        if constexpr (needs_second_looks<T>)
            replace_rows(is && !isfinite(sum[0]), distance, [&](unsigned lane) {
                return scaled_inner_product(query.elements, raw(lane), dimensions, lanes);
            });
    } else {
        double sums[2];
        sums_of_row<ProductAndSquareTerms, T>(elements, row, vectors, sums);
        distance = similarity_of(sums[0], query.square, sums[1]);
        if constexpr (needs_second_looks<T>)
            replace_rows(is && square_needs_scale(sums[1]), distance, [&](unsigned lane) {
                return scaled_similarity(query, raw(lane), dimensions, lanes);
            });
        distance = __dsub_rn(1, distance);
    }
    return distance;
}

namespace {

constexpr unsigned kThreads = 128;
constexpr unsigned kWarps = kThreads / 32;
constexpr unsigned kPlaceBits = 8;
constexpr unsigned kFew = 1 << kPlaceBits;  // found items, that are sorted sooner than others
constexpr std::uint32_t kFewQueries = 768;  // for which warps would not fill a device

/// How a team uses its shared memory: a query's words, then rows of each warp, then what is sorted,
/// then numbers of items, which fit in 16 bits.
struct Layout {
    unsigned pitch;  // of a row, in vectors: an odd number has no two of eight rows in one bank
    unsigned warp_vectors;
    unsigned found_begin;  // in bytes

    Layout(const MarkedItems& marked, std::uint32_t capacity) {
        pitch = marked.row_vectors | 1;
        constexpr unsigned kSorted = 2 * kFew * sizeof(unsigned) / sizeof(uint4);
        warp_vectors = std::max({32 * pitch, marked.per_query / 4, kSorted});
        const std::size_t list = capacity * (sizeof(std::uint64_t) + sizeof(std::uint32_t));
        found_begin = static_cast<unsigned>(std::max(kWarps * warp_vectors * sizeof(uint4), list));
    }
    std::size_t bytes(std::uint32_t capacity) const {
        return found_begin + std::max(capacity, kWarps * kFew) * sizeof(std::uint16_t);
    }
};

using CountScan = cub::BlockScan<unsigned, kThreads, cub::BLOCK_SCAN_WARP_SCANS>;

/// The span of the upper halves of keys, and how many keys.
struct Span {
    unsigned low = UINT32_MAX;
    unsigned high = 0;
    unsigned count = 0;

    __device__ void add(std::uint64_t key) {
        const auto upper = static_cast<unsigned>(key >> 32);
        low = min(low, upper);
        high = max(high, upper);
        ++count;
    }
    /// A key as one of 2^23 steps, in the order of keys, and its place in the lowest bits. The
    /// largest number for no key.
    __device__ unsigned step_of(std::uint64_t key, unsigned place) const {
        if (key == kNoDistance) return UINT32_MAX;
        const unsigned bits = 32 - __clz(static_cast<int>(high - low));
        const std::uint64_t above = key - (std::uint64_t{low} << 32);
        return static_cast<unsigned>(above >> (bits + 9)) << kPlaceBits | place;
    }
};

struct Shared {
    double2 queries[kWarps][MarkedItems::most_dimensions / 2];
    std::uint64_t keys[kWarps][kFew];
    unsigned totals[kWarps];   // of marked items
    unsigned low, high, near;  // of a block's keys: see Span
    CountScan::TempStorage counts;
};

/// Those who keep a query's nearest items.
struct Warp {
    static constexpr unsigned threads = 32;
    __device__ static unsigned thread() { return threadIdx.x % 32; }
    __device__ static void sync() { __syncwarp(); }
    __device__ static bool any(bool own) { return __any_sync(~0u, own); }
    /// What the threads before have, and all.
    __device__ static void sum(unsigned own, Shared&, unsigned& before, unsigned& total) {
        const unsigned with_own = sum_up_to_lane(own);
        before = with_own - own;
        total = __shfl_sync(~0u, with_own, 31);
    }
    /// Of the keys of all threads.
    __device__ static Span join(const Span& own, Shared&) {
        return {warp_min(own.low), warp_max(own.high), warp_sum(own.count)};
    }
};
struct Block {
    static constexpr unsigned threads = kThreads;
    __device__ static unsigned thread() { return threadIdx.x; }
    __device__ static void sync() { __syncthreads(); }
    __device__ static bool any(bool own) { return __syncthreads_or(own) != 0; }
    __device__ static void sum(unsigned own, Shared& shared, unsigned& before, unsigned& total) {
        CountScan(shared.counts).ExclusiveSum(own, before, total);
    }
    __device__ static Span join(const Span& own, Shared& shared) {
        if (threadIdx.x == 0) {
            shared.low = UINT32_MAX;
            shared.high = 0;
            shared.near = 0;
        }
        __syncthreads();
        const Span of_warp = Warp::join(own, shared);
        if (threadIdx.x % 32 == 0) {
            atomicMin(&shared.low, of_warp.low);
            atomicMax(&shared.high, of_warp.high);
            atomicAdd(&shared.near, of_warp.count);
        }
        __syncthreads();
        return {shared.low, shared.high, shared.near};
    }
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

/// Begins to copy a query's words.
template <class Team>
__device__ void copy_words(const MarkedItems& marked, std::uint32_t query, uint4* memory) {
    const unsigned vectors = marked.per_query / 4;
    const auto* const from =
        reinterpret_cast<const uint4*>(marked.words + std::size_t{query} * marked.per_query);
    for (unsigned v = Team::thread(); v < vectors; v += Team::threads)
        copy_vector(memory + v, from + v, true);
    end_of_copies();
}

__device__ unsigned bits_of(const uint4& words) {
    return __popc(words.x) + __popc(words.y) + __popc(words.z) + __popc(words.w);
}

/// Numbers of the marked items, from first_item on, in any order. Returns how many there are; none
/// are written if they are more than `most`. After copy_words(), to `memory`.
template <class Team>
__device__ unsigned take_marked(const MarkedItems& marked, unsigned most, const uint4* memory,
                                std::uint16_t* found, Shared& shared) {
    constexpr unsigned kBitBits = 7;  // of 128 bits
    const unsigned vectors = marked.per_query / 4;
    wait_for_copies<0>();
    Team::sync();
    unsigned count = 0;
    for (unsigned v = Team::thread(); v < vectors; v += Team::threads) count += bits_of(memory[v]);
    unsigned at, total;
    Team::sum(count, shared, at, total);
    if (total > most) return total;
    // Threads have few bits or many: each only tells where its own go, and all then look them up.
    for (unsigned v = Team::thread(); count > 0; v += Team::threads) {
        const unsigned here = bits_of(memory[v]);
        count -= here;
#pragma unroll 1
        for (unsigned i = 0; i < here; ++i)
            found[at++] = static_cast<std::uint16_t>(v << kBitBits | i);
    }
    Team::sync();
#pragma unroll 1
    for (unsigned i = Team::thread(); i < total; i += Team::threads) {
        const std::uint32_t vector = found[i] >> kBitBits;
        found[i] = static_cast<std::uint16_t>(
            item_behind(found[i] % (1u << kBitBits), vector, memory[vector]));
    }
    Team::sync();
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

/// How many of the steps of other groups, each of 32 ordered ones, are below a step of a group.
__device__ unsigned others_below(const unsigned* sorted, unsigned groups, unsigned group,
                                 unsigned step) {
    constexpr unsigned kAtOnce = 4;  // searches, whose waits for memory overlap
    unsigned rank = 0;
#pragma unroll 1
    for (unsigned first = 0; first < groups; first += kAtOnce) {
        const unsigned* steps[kAtOnce];
        unsigned below[kAtOnce] = {};
#pragma unroll
        for (unsigned i = 0; i < kAtOnce; ++i) steps[i] = sorted + 32 * min(first + i, groups - 1);
#pragma unroll
        for (unsigned half = 16; half > 0; half /= 2)
#pragma unroll
            for (unsigned i = 0; i < kAtOnce; ++i)
                if (steps[i][below[i] + half - 1] < step) below[i] += half;
#pragma unroll
        for (unsigned i = 0; i < kAtOnce; ++i) {
            below[i] += steps[i][below[i]] < step;
            if (first + i < groups && first + i != group) rank += below[i];
        }
    }
    return rank;
}

/// How many are before a place's own.
__device__ unsigned exact_rank(const std::uint64_t* keys, const std::uint16_t* found,
                               unsigned total, unsigned place) {
    const std::uint64_t key = keys[place];
    unsigned rank = 0;
    for (unsigned i = 0; i < total; ++i)
        rank += keys[i] != key ? keys[i] < key : found[i] < found[place];
    return rank;
}

/// Keeps the nearest of at most kFew. Warps sort 32 at a time, and look each one's place up in what
/// else was sorted.
template <class Team>
__device__ void sort_and_keep_few(const std::uint64_t* keys, const Span& span, uint4* memory,
                                  const std::uint16_t* found, unsigned total,
                                  std::uint32_t first_item, const ListsView& lists,
                                  std::uint32_t query, bool open) {
    constexpr unsigned kTeamWarps = Team::threads / 32;
    auto* const sorted = reinterpret_cast<unsigned*>(memory);
    unsigned* const order = sorted + kFew;
    const unsigned groups = (total + 31) / 32;
    const unsigned lane = threadIdx.x % 32;
    Team::sync();
    for (unsigned group = Team::thread() / 32; group < groups; group += kTeamWarps) {
        const unsigned place = 32 * group + lane;
        const std::uint64_t key = place < total ? keys[place] : kNoDistance;
        sorted[place] = sort_lanes(span.step_of(key, place));
    }
    Team::sync();
    for (unsigned group = Team::thread() / 32; group < groups; group += kTeamWarps) {
        const unsigned step = sorted[32 * group + lane];
        if (step == UINT32_MAX) continue;
        order[lane + (groups > 1 ? others_below(sorted, groups, group, step) : 0)] = step;
    }
    Team::sync();
    bool same = false;
    for (unsigned i = Team::thread() + 1; i < span.count; i += Team::threads)
        same |= order[i - 1] >> kPlaceBits == order[i] >> kPlaceBits;
    if (Team::any(same)) {
        for (unsigned i = Team::thread(); i < total; i += Team::threads)
            if (keys[i] != kNoDistance) order[exact_rank(keys, found, total, i)] = i;
        Team::sync();
    }
    const unsigned size = min(span.count, lists.k);
    const std::size_t begin = std::size_t{query} * lists.capacity;
    for (unsigned i = Team::thread(); i < size; i += Team::threads) {
        const unsigned from = order[i] % kFew;
        lists.keys[begin + i] = keys[from];
        lists.items[begin + i] = first_item + found[from];
        if (i + 1 == lists.k && !open) lists.limits[query] = distance_of_key(keys[from]);
    }
    if (Team::thread() != 0) return;
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

/// What becomes of a query's marked items.
struct MarkedQuery {
    std::uint32_t number;
    double limit;
    const double2* elements;  // in shared memory, with zeros behind the last one
};

/// The keys of up to 32 items from found[first] on, by a warp that has memory for their rows;
/// kNoDistance for an item that is not to be kept.
template <Metric Of, class T>
__device__ std::uint64_t key_of_row(const MergeInput& input, const MarkedQuery& query,
                                    const std::uint16_t* found, unsigned first, unsigned total,
                                    unsigned pitch, uint4* rows) {
    const MarkedItems& marked = input.marked;
    const DeviceQueries& queries = input.queries;
    const std::uint32_t dimensions = queries.dimensions;
    const ExactQuery exact{queries.elements + std::size_t{query.number} * dimensions,
                           queries.squares[query.number]};
    const unsigned lane = threadIdx.x % 32;
    const bool is = first + lane < total;
    copy_rows(marked, found + first, min(32u, total - first), pitch, rows);
    const double distance = distance_of_row<Of, T>(
        exact, query.elements, rows + lane * pitch, marked.row_vectors, dimensions, is,
        [&](unsigned of) {
            return static_cast<const T*>(input.items.elements) +
                   (std::size_t{marked.first_item - input.first_item} + found[first + of]) *
                       dimensions;
        });
    __syncwarp();
    if (!is || !(distance <= query.limit)) return kNoDistance;
    if (queries.keys != nullptr &&
        queries.keys[query.number] == input.item_keys[marked.first_item + found[first + lane]])
        return kNoDistance;
    return ordered_bits(static_cast<std::uint64_t>(__double_as_longlong(distance)));
}

/// Where a team works: what it needs of shared memory.
struct Place {
    uint4* memory;
    std::uint16_t* found;
    std::uint64_t* keys;
    double* elements;  // of the query
};

/// Keeps the nearest of a query's marked items, where there are no more than `most`. Returns how
/// many there are.
template <Metric Of, class T, class Team>
__device__ unsigned keep_of_query(const ListsView& lists, const MergeInput& input,
                                  const Layout& layout, std::uint32_t number, bool open,
                                  unsigned most, const Place& place, Shared& shared) {
    const MarkedItems& marked = input.marked;
    const std::uint32_t dimensions = input.queries.dimensions;
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = Team::thread() / 32;
    copy_words<Team>(marked, number, place.memory);
    for (unsigned i = Team::thread(); i < MarkedItems::most_dimensions; i += Team::threads)
        place.elements[i] =
            i < dimensions ? input.queries.elements[std::size_t{number} * dimensions + i] : 0;
    const MarkedQuery query{number, lists.limits[number],
                            reinterpret_cast<const double2*>(place.elements)};
    const unsigned total = take_marked<Team>(marked, most, place.memory, place.found, shared);
    if (total == 0 || total > most) return total;

    Span span;
    for (unsigned first = 32 * warp; first < total; first += Team::threads) {
        const std::uint64_t key =
            key_of_row<Of, T>(input, query, place.found, first, total, layout.pitch,
                              place.memory + warp * layout.warp_vectors);
        const unsigned own = first + lane;
        if (total <= kFew) {
            place.keys[own] = key;
            if (key != kNoDistance) span.add(key);
        } else if (own < total) {
            const std::size_t to = std::size_t{number} * lists.capacity + own;
            lists.keys[to] = key;
            lists.items[to] = marked.first_item + place.found[own];
        }
    }
    if (total <= kFew)
        sort_and_keep_few<Team>(place.keys, Team::join(span, shared), place.memory, place.found,
                                total, marked.first_item, lists, number, open);
    else if constexpr (std::is_same_v<Team, Block>)
        sort_all(place.memory, total, lists, number, open);
    return total;
}

// Blocks of a multiprocessor, at least.
template <Metric Of>
constexpr unsigned kBlocks = Of == Metric::cosine ? 5 : 6;

/// A block for so many queries, 1 or as many as it has warps.
template <Metric Of, class T>
__global__ __launch_bounds__(kThreads, kBlocks<Of>) void keep_marked(
    const ListsView lists, const MergeInput input, const QuerySelection selection,
    const Layout layout, unsigned per_block, bool open, unsigned long long* rescored) {
    extern __shared__ uint4 memory[];
    __shared__ Shared shared;
    let_next_begin();
    wait_for_previous();
    auto* const found =
        reinterpret_cast<std::uint16_t*>(reinterpret_cast<std::byte*>(memory) + layout.found_begin);
    const unsigned warp = threadIdx.x / 32;
    const std::uint32_t first = per_block * blockIdx.x;
    if (per_block > 1) {
        unsigned total = 0;
        if (first + warp < selection.count)
            total = keep_of_query<Of, T, Warp>(
                lists, input, layout, selection[first + warp], open, kFew,
                {memory + warp * layout.warp_vectors, found + warp * kFew, shared.keys[warp],
                 reinterpret_cast<double*>(shared.queries[warp])},
                shared);
        if (threadIdx.x % 32 == 0) shared.totals[warp] = total;
        __syncthreads();
    }
    unsigned compared = 0;
    for (unsigned of = 0; of < per_block; ++of) {
        unsigned total = per_block > 1 ? shared.totals[of] : kFew + 1;
        if (total > kFew) {
            const std::uint32_t query = selection[first + of];
            __syncthreads();
            total = keep_of_query<Of, T, Block>(
                lists, input, layout, query, open, lists.capacity,
                {memory, found, shared.keys[0], reinterpret_cast<double*>(shared.queries[0])},
                shared);
            if (total > lists.capacity && threadIdx.x == 0) lists.counts[query] = total;
        }
        if (total <= lists.capacity) compared += total;
    }
    if (threadIdx.x == 0) atomicAdd(rescored, static_cast<unsigned long long>(compared));
}

template <Metric Of>
Status run(const ListsView& lists, const MergeInput& input, const QuerySelection& selection,
           bool open, unsigned long long* rescored, cudaStream_t stream) {
    const Layout layout(input.marked, lists.capacity);
    const std::size_t bytes = layout.bytes(lists.capacity);
    const unsigned per_block = selection.count > kFewQueries ? kWarps : 1;
    return with_element_type(input.items.type, [&](auto element) {
        const auto kernel =
            keep_marked<Of, std::remove_const_t<std::remove_pointer_t<decltype(element)>>>;
        GPUTEXT_TRY(allow_shared_bytes(kernel, bytes));
        return launch_early("merging neighbors", kernel, blocks_for(selection.count, per_block),
                            kThreads, bytes, stream, lists, input, selection, layout, per_block,
                            open, rescored);
    });
}

}  // namespace

std::size_t shared_bytes_for_marks(const MarkedItems& marked, std::uint32_t capacity) {
    return Layout(marked, capacity).bytes(capacity) + sizeof(Shared);
}

Status NeighborLists::merge_marked(const MergeInput& input, const QuerySelection& selection,
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
