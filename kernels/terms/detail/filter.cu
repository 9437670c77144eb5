#include "kernels/terms/detail/filter.hpp"

#include <algorithm>
#include <cub/block/block_scan.cuh>

#include "kernels/base/binary_search.cuh"
#include "kernels/base/early_launch.cuh"
#include "kernels/base/launch.hpp"
#include "kernels/base/warp.cuh"
#include "kernels/terms/detail/gates.cuh"
#include "kernels/terms/detail/rows.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = kTermGroups;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr unsigned kBlocks = 4;  // of a multiprocessor, which has no more threads
#else
constexpr unsigned kBlocks = 6;
#endif
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ >= 900)
constexpr unsigned kWideAtOnce = 2;
#else
constexpr unsigned kWideAtOnce = 1;  // of a multiprocessor, which has fewer threads
#endif
constexpr unsigned kWideThreads = 32 * kWideGroups;  // where there are few blocks
constexpr unsigned kWideBlocks = 264;                // of a large device at a time
constexpr unsigned kMostOfTile = 8;                  // blocks that share a tile
constexpr std::uint32_t kLongQuery = 256;
constexpr unsigned kMostLists = 1024;  // laid end to end at a time
constexpr double kLaunchWork = 3e9;    // postings, or sums looked at: some 10 ms
constexpr std::uint32_t kMostTiles = 65535;

/// Posting lists of a tile, laid end to end.
struct ListsInTile {
    std::uint32_t* begins;   // where each begins among all, and the end of the last
    std::uint32_t* sources;  // its first posting's place in the index, less `begins`
    int* parts;              // the query's
    unsigned count;
    std::uint32_t total;
};

template <unsigned Threads>
using Scan = cub::BlockScan<std::uint64_t, Threads, cub::BLOCK_SCAN_WARP_SCANS>;

/// The lists of terms [begin, end) of a query, at most `most`. By the block, which they are ready
/// for when it returns.
template <unsigned Threads>
__device__ void lay_lists(const TermIndex& index, const std::uint32_t* columns,
                          const std::int32_t* parts, std::uint32_t tile, std::uint64_t begin,
                          std::uint64_t end, unsigned most,
                          typename Scan<Threads>::TempStorage& storage, ListsInTile& lists) {
    constexpr unsigned kEach = kMostLists / Threads;
    std::uint32_t first[kEach], size[kEach];
    int part[kEach];
    std::uint64_t own = 0;  // lists << 32 | postings
#pragma unroll
    for (unsigned i = 0; i < kEach; ++i) {
        const std::uint64_t at = begin + i * Threads + threadIdx.x;
        part[i] = i * Threads < most && at < end ? parts[at] : 0;
        size[i] = 0;
        if (part[i] == 0) continue;
        const std::size_t list = std::size_t{tile} * index.terms + columns[at];
        first[i] = index.begins[list];
        size[i] = index.begins[list + 1] - first[i];
        if (size[i] > 0) own += std::uint64_t{1} << 32 | size[i];
    }
    std::uint64_t before, all;
    Scan<Threads>(storage).ExclusiveSum(own, before, all);
#pragma unroll
    for (unsigned i = 0; i < kEach; ++i) {
        if (size[i] == 0) continue;
        const auto list = static_cast<unsigned>(before >> 32);
        const auto place = static_cast<std::uint32_t>(before);
        lists.begins[list] = place;
        lists.sources[list] = first[i] - place;
        lists.parts[list] = part[i];
        before += std::uint64_t{1} << 32 | size[i];
    }
    lists.count = static_cast<unsigned>(all >> 32);
    lists.total = static_cast<std::uint32_t>(all);
    if (threadIdx.x == 0) lists.begins[lists.count] = lists.total;
    __syncthreads();
}

/// The last list that begins at `place` or before it, of lists [low, high].
__device__ unsigned list_at(const ListsInTile& lists, std::uint32_t place, unsigned low,
                            unsigned high) {
    const auto begun = [&](unsigned list) { return lists.begins[list] <= place; };
    return partition_point(low + 1, high + 1, begun) - 1;
}

/// A share of a tile's postings: parts [begin, end) of `of` equal parts, for each lay_lists() by
/// itself.
struct Share {
    std::uint32_t begin = 0, end = 1, of = 1;

    __device__ std::uint32_t place(std::uint32_t part, std::uint32_t total) const {
        return static_cast<std::uint32_t>(std::uint64_t{total} * part / of);
    }
};

/// Adds a posting's product to its item's sum. `magnitudes`: as if the weight were not negative.
__device__ void add_posting(std::uint32_t posting, int part, bool magnitudes, int* sums) {
    const int product = (static_cast<int>(posting) >> 16) * part;
    atomicAdd(&sums[posting & 0xffff], magnitudes ? abs(product) : product);
}

/// Adds the products of a share of all postings to the sums.
template <unsigned Threads>
__device__ void add_postings(const ListsInTile& lists, const std::uint32_t* postings,
                             const Share& share, bool magnitudes, int* sums) {
    const unsigned lane = threadIdx.x % 32;
    const unsigned warp = threadIdx.x / 32;
    constexpr unsigned kWarps = Threads / 32;
    constexpr unsigned kAhead = Threads > kThreads ? 8 : 4;  // postings of a lane under way
    const std::uint32_t first = share.place(share.begin, lists.total);
    const std::uint32_t total = share.place(share.end, lists.total) - first;
    const std::uint32_t each = ((total + kWarps - 1) / kWarps + 31) / 32 * 32;
    const std::uint32_t end = first + min(total, (warp + 1) * each);
    std::uint32_t base = first + warp * each;
    if (base >= end) return;
    unsigned low = list_at(lists, base, 0, lists.count - 1);
    while (base < end) {
        std::uint32_t posting[kAhead];
        // Most postings are of long lists.
        const std::uint32_t end_of_low = min(end, lists.begins[low + 1]);
        if (base + 32 * kAhead <= end_of_low) {
            const std::uint32_t source = lists.sources[low] + lane;
            const int part = lists.parts[low];
            for (; base + 32 * kAhead <= end_of_low; base += 32 * kAhead) {
                const std::uint32_t* const from = postings + (source + base);
#pragma unroll
                for (unsigned i = 0; i < kAhead; ++i) posting[i] = from[32 * i];
#pragma unroll
                for (unsigned i = 0; i < kAhead; ++i)
                    add_posting(posting[i], part, magnitudes, sums);
            }
            if (base >= end) break;
        }
        // The list that the last of these postings is of.
        const std::uint32_t last = min(end, base + 32 * kAhead) - 1;
        unsigned high = low;
        for (;;) {
            const unsigned next = high + 1 + lane;
            const unsigned begun =
                __popc(__ballot_sync(~0u, next < lists.count && lists.begins[next] <= last));
            high += begun;
            if (begun < 32) break;
        }
        int part[kAhead];
#pragma unroll
        for (unsigned i = 0; i < kAhead; ++i) {
            const std::uint32_t place = base + 32 * i + lane;
            part[i] = 0;
            if (place >= end) continue;
            const unsigned list = list_at(lists, place, low, high);
            posting[i] = postings[lists.sources[list] + place];
            part[i] = lists.parts[list];
        }
#pragma unroll
        for (unsigned i = 0; i < kAhead; ++i)
            if (part[i] != 0) add_posting(posting[i], part[i], magnitudes, sums);
        low = high;
        base += 32 * kAhead;
    }
}

/// Adds the scores of one query and one tile to `sums`. By the block.
template <unsigned Threads>
__device__ void add_terms(const TermFilterJob& job, RowSpan span, std::uint32_t tile,
                          const std::int32_t* parts, unsigned most_lists, bool magnitudes,
                          int* sums, const Share& share = {}) {
    __shared__ typename Scan<Threads>::TempStorage storage;
    auto* const memory = reinterpret_cast<std::uint32_t*>(sums + kTermTile);
    ListsInTile lists{memory, memory + most_lists + 1,
                      reinterpret_cast<int*>(memory + 2 * most_lists + 1), 0, 0};
    for (std::uint64_t begin = span.begin; begin < span.end; begin += most_lists) {
        lay_lists<Threads>(job.index, job.queries.rows.columns, parts, tile, begin, span.end,
                           most_lists, storage, lists);
        add_postings<Threads>(lists, job.index.postings, share, magnitudes, sums);
        __syncthreads();
    }
}

template <unsigned Threads>
__device__ void clear_sums(int* sums) {
    auto* const vectors = reinterpret_cast<int4*>(sums);
#pragma unroll
    for (unsigned i = 0; i < kTermTile / 4 / Threads; ++i)
        vectors[i * Threads + threadIdx.x] = {0, 0, 0, 0};
    __syncthreads();
}

/// Begins the sums with the scores of dense terms, multiplied by `factor` to be in the scale of the
/// others.
__device__ void start_sums(const std::int16_t* scores, int factor, int* sums) {
    const auto* const from = reinterpret_cast<const uint4*>(scores);
    auto* const to = reinterpret_cast<int4*>(sums);
#pragma unroll
    for (unsigned i = 0; i < kTermTile / 8 / kThreads; ++i) {
        const unsigned at = i * kThreads + threadIdx.x;
        const uint4 eight = from[at];
        const auto low = [=](std::uint32_t two) {
            return factor * static_cast<std::int16_t>(two & 0xffff);
        };
        const auto high = [=](std::uint32_t two) {
            return factor * static_cast<std::int16_t>(two >> 16);
        };
        to[2 * at] = {low(eight.x), high(eight.x), low(eight.y), high(eight.y)};
        to[2 * at + 1] = {low(eight.z), high(eight.z), low(eight.w), high(eight.w)};
    }
    __syncthreads();
}

/// Sums of one query and one tile: of all terms, or those of the dense ones in row `dense_row` and
/// of the others. By the block, which they are ready for when it returns.
__device__ void sum_terms(const TermFilterJob& job, std::uint32_t query, std::uint32_t dense_row,
                          std::uint32_t tile, unsigned most_lists, bool complete, int* sums) {
    const bool dense = job.dense.padded > 0 && !complete;
    if (dense)
        start_sums(job.dense_scores + std::size_t{dense_row} * kTermTile,
                   2 * static_cast<int>(job.queries.scale), sums);
    else
        clear_sums<kThreads>(sums);
    add_terms<kThreads>(job, span_of_row(job.queries.rows, query), tile,
                        dense ? job.dense_queries.cold_parts : job.queries.parts, most_lists,
                        complete, sums);
}

__device__ bool same_keys(const TermFilterJob& job, std::uint32_t query, std::uint32_t in_index) {
    return job.queries.rows.keys != nullptr &&
           job.queries.rows.keys[query] == job.index.items.keys[in_index];
}

__device__ int most_of(int4 four) {
    return max(max(four.x, four.y), max(four.z, four.w));
}

/// Adds those of four items to the query's list whose scores reach `least`.
__device__ void add_reaching(const TermFilterJob& job, std::uint32_t query, std::uint32_t first,
                             int4 scores, int least) {
    if (most_of(scores) < least) return;
    const int each[4] = {scores.x, scores.y, scores.z, scores.w};
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t item = job.first_item + first + i;
        if (each[i] < least || item < job.begin || item >= job.end) continue;
        if (same_keys(job, query, first + i)) continue;
        add_found(job.lists, query, item, __int2float_rd(each[i]));
    }
}

/// Adds items whose scores may reach `least` by what bounded terms add at most. No score is
/// negative, and with what is added none is above 2^32.
__device__ void add_light(const TermFilterJob& job, std::uint32_t query, std::uint32_t tile,
                          const int* sums, unsigned step, unsigned least) {
    const auto* const vectors = reinterpret_cast<const int4*>(sums);
    const auto* const lengths =
        reinterpret_cast<const uchar4*>(job.bounded.lengths + std::size_t{tile} * kTermTile);
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < kTermTile / 4; i += kThreads) {
        int4 four = vectors[i];
        const uchar4 more = lengths[i];
        // Scores that do not reach the gate become one that never does.
        const auto kept = [=](int score, unsigned length) {
            return static_cast<unsigned>(score) + length * step >= least ? score : -1;
        };
        four = {kept(four.x, more.x), kept(four.y, more.y), kept(four.z, more.z),
                kept(four.w, more.w)};
        add_reaching(job, query, tile * kTermTile + 4 * i, four, 0);
    }
}

/// Blocks with the same blockIdx.y take one tile.
__global__ __launch_bounds__(kThreads, kBlocks) void filter_terms(TermFilterJob job,
                                                                  unsigned most_lists,
                                                                  std::uint32_t first_query,
                                                                  std::uint32_t first_tile) {
    extern __shared__ __align__(16) int sums[];
    const std::uint32_t query = job.selection[first_query + blockIdx.x];
    const std::uint32_t tile = first_tile + blockIdx.y;
    if (job.lists.counts[query] > job.lists.capacity) return;  // it is searched again anyway
    const float gate = job.gates[query];
    const bool complete = !(gate >= 1);
    const int least = complete ? 1 : static_cast<int>(gate);
    const unsigned step = light_step(job.bounded, job.light, job.queries, query, gate);
    if (step > 0) {
        clear_sums<kThreads>(sums);
        add_terms<kThreads>(job, span_of_row(job.queries.rows, query), tile, job.light.parts,
                            most_lists, false, sums);
        add_light(job, query, tile, sums, step, static_cast<unsigned>(least));
        return;
    }
    sum_terms(job, query, blockIdx.x, tile, most_lists, complete, sums);
    const auto* const vectors = reinterpret_cast<const int4*>(sums);
#pragma unroll 4
    for (unsigned i = threadIdx.x; i < kTermTile / 4; i += kThreads)
        add_reaching(job, query, tile * kTermTile + 4 * i, vectors[i], least);
}

/// Which tile of the index the n-th sampled one is.
__host__ __device__ std::uint32_t sampled_tile(std::uint32_t n, std::uint32_t sampled,
                                               std::uint32_t tiles) {
    return static_cast<std::uint32_t>((std::uint64_t{n} * tiles + tiles / 2) / sampled);
}

/// Blocks with the same blockIdx.y take one sampled tile. The items of a thread are a group.
__global__ __launch_bounds__(kThreads, kBlocks) void sample(TermFilterJob job, unsigned most_lists,
                                                            std::uint32_t first_query,
                                                            std::uint32_t first_sampled,
                                                            std::uint32_t all_sampled,
                                                            float* sampled) {
    extern __shared__ __align__(16) int sums[];
    const std::uint32_t query = job.selection[first_query + blockIdx.x];
    const std::uint32_t number = first_sampled + blockIdx.y;
    sum_terms(job, query, blockIdx.x, sampled_tile(number, all_sampled, job.index.tiles),
              most_lists, false, sums);
    const auto* const vectors = reinterpret_cast<const int4*>(sums);
    int most = 0;
    for (unsigned i = threadIdx.x; i < kTermTile / 4; i += kThreads)
        most = max(most, most_of(vectors[i]));
    sampled[(std::size_t{query} * all_sampled + number) * kTermGroups + threadIdx.x] =
        __int2float_rd(most);
}

/// Four scores, but 0 for items of the query's key.
__device__ int4 of_other_keys(const TermFilterJob& job, std::uint32_t query, std::uint32_t first,
                              int4 scores) {
    if (job.queries.rows.keys == nullptr) return scores;
    const auto keep = [&](int score, std::uint32_t item) {
        return item < job.index.items.rows && same_keys(job, query, item) ? 0 : score;
    };
    return {keep(scores.x, first), keep(scores.y, first + 1), keep(scores.z, first + 2),
            keep(scores.w, first + 3)};
}

/// Writes the scores of a query and a tile to memory. The items of a warp are a group. By wide
/// blocks.
__device__ void keep_scores(const TermFilterJob& job, std::uint32_t query, std::uint32_t tile,
                            const int* from, int* scores, float* largest) {
    const std::size_t place = std::size_t{query} * job.index.tiles + tile;
    const auto* const vectors = reinterpret_cast<const int4*>(from);
    auto* const to = reinterpret_cast<int4*>(scores + place * kTermTile);
    int most = 0;
#pragma unroll
    for (unsigned i = threadIdx.x; i < kTermTile / 4; i += kWideThreads) {
        const int4 four = of_other_keys(job, query, tile * kTermTile + 4 * i, vectors[i]);
        to[i] = four;
        most = max(most, most_of(four));
    }
    most = warp_max(most);
    if (threadIdx.x % 32 == 0)
        largest[place * kWideGroups + threadIdx.x / 32] = __int2float_rd(most);
}

/// Blocks with the same blockIdx.y take one query, each of them a tile. Also makes the queries'
/// lists empty.
__global__ __launch_bounds__(kWideThreads, kWideAtOnce) void score_all(TermFilterJob job,
                                                                       unsigned most_lists,
                                                                       double radius, int* scores,
                                                                       float* largest) {
    extern __shared__ __align__(16) int sums[];
    let_next_begin();
    const std::uint32_t query = blockIdx.y;
    const std::uint32_t tile = blockIdx.x;
    const RowSpan span = span_of_row(job.queries.rows, query);
    if (tile == 0 && threadIdx.x == 0) clear_list(job.lists, query, radius);
    clear_sums<kWideThreads>(sums);
    add_terms<kWideThreads>(job, span, tile, job.queries.parts, most_lists, false, sums);
    keep_scores(job, query, tile, sums, scores, largest);
}

/// Blocks with the same blockIdx.y set the scores of one query to 0, and empty its list.
__global__ __launch_bounds__(kWideThreads) void clear_scores(TermFilterJob job, double radius,
                                                             int* scores) {
    let_next_begin();
    const std::uint32_t query = blockIdx.y;
    if (blockIdx.x == 0 && threadIdx.x == 0) clear_list(job.lists, query, radius);
    auto* const to = reinterpret_cast<int4*>(
        scores + (std::size_t{query} * job.index.tiles + blockIdx.x) * kTermTile);
#pragma unroll
    for (unsigned i = threadIdx.x; i < kTermTile / 4; i += kWideThreads) to[i] = {0, 0, 0, 0};
}

/// Blocks with the same blockIdx.y take one query, each of them as many of its postings. With n
/// blocks, the postings of each tile are divided into n parts, and a block has as many parts as
/// there are tiles, one after the other. Adds to scores that clear_scores() has cleared.
__global__ __launch_bounds__(kWideThreads, kWideAtOnce) void score_shares(TermFilterJob job,
                                                                          unsigned most_lists,
                                                                          int* scores) {
    extern __shared__ __align__(16) int sums[];
    let_next_begin();
    const std::uint32_t query = blockIdx.y;
    const std::uint32_t of = gridDim.x;
    const RowSpan span = span_of_row(job.queries.rows, query);
    std::uint64_t part = std::uint64_t{blockIdx.x} * job.index.tiles;
    const std::uint64_t end = part + job.index.tiles;
    while (part < end) {
        const auto tile = static_cast<std::uint32_t>(part / of);
        const std::uint64_t first = std::uint64_t{tile} * of;  // part of the tile
        const std::uint64_t next = min(first + of, end);
        clear_sums<kWideThreads>(sums);
        add_terms<kWideThreads>(job, span, tile, job.queries.parts, most_lists, false, sums,
                                {static_cast<std::uint32_t>(part - first),
                                 static_cast<std::uint32_t>(next - first), of});
        wait_for_previous();
        int* const to = scores + (std::size_t{query} * job.index.tiles + tile) * kTermTile;
        for (unsigned i = threadIdx.x; i < kTermTile; i += kWideThreads)
            if (sums[i] != 0) atomicAdd(&to[i], sums[i]);
        __syncthreads();
        part = next;
    }
}

/// Looks at the scores that several blocks have added up.
__global__ __launch_bounds__(kWideThreads) void look_at_scores(TermFilterJob job, int* scores,
                                                               float* largest) {
    let_next_begin();
    wait_for_previous();
    const std::uint32_t query = blockIdx.y;
    const std::uint32_t tile = blockIdx.x;
    keep_scores(job, query, tile,
                scores + (std::size_t{query} * job.index.tiles + tile) * kTermTile, scores,
                largest);
}

/// The scores of a tile that a thread looks at.
struct OwnScores {
    static constexpr unsigned vectors = kTermTile / 4 / kWideThreads;
    int4 four[vectors];

    /// `scores`: all scores of a query.
    __device__ OwnScores(const int* scores, std::uint32_t tile) {
        const auto* const from =
            reinterpret_cast<const int4*>(scores + std::size_t{tile} * kTermTile);
#pragma unroll
        for (unsigned i = 0; i < vectors; ++i) four[i] = from[i * kWideThreads + threadIdx.x];
    }

    /// Calls take(item of the tile, score) for those that reach `least`.
    template <class Take>
    __device__ void each_reaching(int least, Take&& take) const {
#pragma unroll
        for (unsigned i = 0; i < vectors; ++i) {
            if (most_of(four[i]) < least) continue;
            const int each[4] = {four[i].x, four[i].y, four[i].z, four[i].w};
#pragma unroll
            for (unsigned n = 0; n < 4; ++n)
                if (each[n] >= least) take(4 * (i * kWideThreads + threadIdx.x) + n, each[n]);
        }
    }
};

/// Blocks of one y take one query: each finds its gate, which the first one writes, and then adds
/// the items of some tiles. `groups` largest scores by query, of which `rank` are to reach the
/// gate. The queries are on the device before the launch before this one.
__global__ __launch_bounds__(kWideThreads) void filter_kept(TermFilterJob job, TermGates gates,
                                                            double limit, const int* scores,
                                                            const float* largest,
                                                            std::uint32_t groups,
                                                            std::uint32_t rank) {
    extern __shared__ unsigned reached[];
    __shared__ float gate;
    __shared__ std::uint32_t found, first;
    let_next_begin();
    const std::uint32_t query = blockIdx.y;
    GuessedGate guess;
    if (threadIdx.x == 0) {
        guess = GuessedGate(gates, query, limit);
        found = 0;
    }
    wait_for_previous();
    const int* const own_scores = scores + std::size_t{query} * job.index.tiles * kTermTile;
    OwnScores own(own_scores, blockIdx.x);
    for (std::uint32_t i = threadIdx.x; i < groups; i += kWideThreads)
        reached[i] = ordered_float(largest[std::size_t{query} * groups + i]);
    __syncthreads();
    const unsigned kth = about_kth_score<kWideThreads>(reached, groups, rank);
    if (threadIdx.x == 0) {
        const float at = guess.at(kth);
        // The k nearest are not known to reach less than 1.
        gate = at == -INFINITY ? INFINITY : at;
        if (blockIdx.x == 0) gates.gates[query] = gate;
    }
    __syncthreads();
    if (gate == INFINITY) return;
    const auto least = static_cast<int>(gate);
    for (std::uint32_t tile = blockIdx.x;;) {
        std::uint32_t count = 0;
        own.each_reaching(least, [&](std::uint32_t, int) { ++count; });
        std::uint32_t place = 0;
        if (count > 0) place = atomicAdd(&found, count);
        __syncthreads();
        if (threadIdx.x == 0 && found > 0) {
            first = atomicAdd(&job.lists.counts[query], found);
            found = 0;
        }
        __syncthreads();
        if (count > 0) {
            place += first;
            own.each_reaching(least, [&](std::uint32_t item, int score) {
                put_found(job.lists, query, place++, job.first_item + tile * kTermTile + item,
                          __int2float_rd(score));
            });
        }
        tile += gridDim.x;
        if (tile >= job.index.tiles) return;
        own = OwnScores(own_scores, tile);
    }
}

/// A block for each query.
__global__ __launch_bounds__(kThreads) void count_work(TermFilterJob job,
                                                       unsigned long long* work) {
    const std::uint32_t query = job.selection[blockIdx.x];
    const RowSpan span = span_of_row(job.queries.rows, query);
    unsigned long long own = 0;
    // In one tile of all: the others are about as full.
    const std::size_t lists = std::size_t{job.index.tiles / 2} * job.index.terms;
    for (std::uint64_t at = span.begin + threadIdx.x; at < span.end; at += kThreads) {
        const std::size_t list = lists + job.queries.rows.columns[at];
        own += job.index.begins[list + 1] - job.index.begins[list];
    }
    own = warp_sum(own);
    if (threadIdx.x % 32 == 0) atomicAdd(work, own * job.index.tiles);
}

/// Lists that are laid at a time: a multiple of the threads.
unsigned lists_at_once(const TermFilterJob& job, unsigned threads) {
    return std::min(kMostLists, std::max(1u, blocks_for(job.most_terms, threads)) * threads);
}

std::size_t shared_bytes(unsigned most_lists) {
    return (kTermTile + 3 * most_lists + 1) * sizeof(std::uint32_t);
}

/// Scores of dense terms for the launch that follows, if there are any.
Status multiply(const TermFilterJob& job, std::uint32_t query, std::uint32_t queries,
                std::uint32_t tile, cudaStream_t stream) {
    if (job.dense.padded == 0) return {};
    return multiply_dense(job.dense, job.dense_queries, query, queries, tile * kTermTile,
                          job.index.items.rows, job.dense_scores, stream);
}

}  // namespace

Status run_term_filter(const TermFilterJob& job, double work, Stop stop, cudaStream_t stream) {
    if (job.selection.count == 0 || job.begin >= job.end) return {};
    const unsigned most_lists = lists_at_once(job, kThreads);
    const std::uint32_t first_tile = (job.begin - job.first_item) / kTermTile;
    const std::uint32_t end_tile = (job.end - job.first_item - 1) / kTermTile + 1;
    const std::uint32_t queries = job.selection.count;
    // What a block does, with what it takes for looking at sums.
    const double share = job.dense.padded > 0 ? 0.2 : 1;  // that dense terms leave
    const double of_block = share * work / job.index.tiles / queries + kTermTile / 2;
    const auto most_blocks = static_cast<std::uint64_t>(std::max(1.0, kLaunchWork / of_block));
    auto query_step = static_cast<std::uint32_t>(std::min<std::uint64_t>(queries, most_blocks));
    auto tile_step = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(most_blocks / query_step, 1, kMostTiles));
    if (job.dense.padded > 0) {
        query_step = std::min(query_step, DenseQueriesMemory::kMostAtOnce);
        tile_step = 1;
    }
    double blocks_queued = 0;
    for (std::uint32_t tile = first_tile; tile < end_tile; tile += tile_step)
        for (std::uint32_t query = 0; query < queries; query += query_step) {
            const dim3 blocks(std::min(query_step, queries - query),
                              std::min(tile_step, end_tile - tile));
            blocks_queued += static_cast<double>(blocks.x) * blocks.y;
            if (blocks_queued > static_cast<double>(most_blocks) && blocks_queued > blocks.x) {
                // A long queue of launches could not be stopped.
                GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), "filtering neighbors"));
                if (stop()) return Status::cancelled();
                blocks_queued = 0;
            }
            GPUTEXT_TRY(multiply(job, query, blocks.x, tile, stream));
            filter_terms<<<blocks, kThreads, shared_bytes(most_lists), stream>>>(job, most_lists,
                                                                                 query, tile);
            GPUTEXT_TRY(launched("filtering neighbors"));
        }
    return {};
}

Status sample_terms(const TermFilterJob& job, std::uint32_t tiles, float* sampled,
                    cudaStream_t stream) {
    const unsigned most_lists = lists_at_once(job, kThreads);
    const std::uint32_t queries = job.selection.count;
    const bool dense = job.dense.padded > 0;
    const std::uint32_t query_step = dense ? DenseQueriesMemory::kMostAtOnce : queries;
    const std::uint32_t tile_step = dense ? 1 : tiles;
    for (std::uint32_t tile = 0; tile < tiles; tile += tile_step)
        for (std::uint32_t query = 0; query < queries; query += query_step) {
            const dim3 blocks(std::min(query_step, queries - query), tile_step);
            GPUTEXT_TRY(
                multiply(job, query, blocks.x, sampled_tile(tile, tiles, job.index.tiles), stream));
            sample<<<blocks, kThreads, shared_bytes(most_lists), stream>>>(job, most_lists, query,
                                                                           tile, tiles, sampled);
            GPUTEXT_TRY(launched("sampling scores"));
        }
    return {};
}

Status score_all_terms(const TermFilterJob& job, double radius, int* scores, float* largest,
                       cudaStream_t stream) {
    const unsigned most_lists = lists_at_once(job, kWideThreads);
    const std::size_t bytes = shared_bytes(most_lists);
    const std::uint32_t queries = job.selection.count;
    const dim3 tiles(job.index.tiles, queries);
    // Long queries' postings are divided, so that all multiprocessors have as many.
    if (job.most_terms < kLongQuery || std::uint64_t{tiles.x} * queries > kWideBlocks) {
        score_all<<<tiles, kWideThreads, bytes, stream>>>(job, most_lists, radius, scores, largest);
        return launched("scoring all items");
    }
    clear_scores<<<tiles, kWideThreads, 0, stream>>>(job, radius, scores);
    GPUTEXT_TRY(launched("clearing scores"));
    const dim3 shares(std::min(kWideBlocks / queries, kMostOfTile * job.index.tiles), queries);
    GPUTEXT_TRY(launch_early("scoring all items", score_shares, shares, kWideThreads, bytes, stream,
                             job, most_lists, scores));
    return launch_early("scoring all items", look_at_scores, tiles, kWideThreads, 0, stream, job,
                        scores, largest);
}

Status filter_scores(const TermFilterJob& job, const TermGates& gates, double limit,
                     const int* scores, const float* largest, std::uint32_t rank,
                     cudaStream_t stream) {
    const std::uint32_t queries = job.selection.count;
    const std::uint32_t groups = job.index.tiles * kWideGroups;
    const std::size_t bytes = groups * sizeof(unsigned);
    GPUTEXT_TRY(allow_shared_bytes(filter_kept, bytes));
    const dim3 blocks(std::min(std::max(kWideBlocks / queries, 1u), job.index.tiles), queries);
    return launch_early("filtering neighbors", filter_kept, blocks, kWideThreads, bytes, stream,
                        job, gates, limit, scores, largest, groups, rank);
}

Status count_term_work(const TermFilterJob& job, unsigned long long* work, cudaStream_t stream) {
    if (job.selection.count == 0) return {};
    count_work<<<job.selection.count, kThreads, 0, stream>>>(job, work);
    return launched("counting postings");
}

}  // namespace gputext::gpu
